import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { pagePaths } from '../../../server/page-paths.ts';
import { api, type Refusal } from '../api.ts';
import { enter } from '../enter.ts';
import { Alert, Button } from '../form/form.tsx';
import { useAction } from '../form/use-action.ts';
import { sentenceFor } from '../form/use-form.ts';
import { canSuggestPasskeys, ifAccepted, passkeyFor } from '../passkeys.ts';
import { markup, text } from '../texts.ts';

/** Before the five minutes end within which the passkey that is asked for can be used. */
const RENEWED_AFTER_MS = 4 * 60_000;

/** The button of the login by passkey. While it is on the page, the email field suggests passkeys too. */
export function PasskeyLogin() {
  const { busy, refusal, act } = useAction();
  const suggestedAt = useRef(0);

  const logIn = (give: () => ReturnType<typeof passkeyFor>) =>
    act('passkey', async () => {
      suggestedAt.current = Date.now();
      try {
        await enter(async () => ifAccepted(api.auth.finishPasskey.mutate(await give())));
      } catch (error) {
        // The browser suggests nothing any more: it does again from the next step of the user on.
        suggestedAt.current = 0;
        throw error;
      }
      return undefined;
    });

  useEffect(() => {
    const suggest = async () => {
      if (Date.now() - suggestedAt.current < RENEWED_AFTER_MS) return;
      suggestedAt.current = Date.now();
      const given = await suggestion();
      if (given) await logIn(async () => given);
    };
    void suggest();
    addEventListener('focusin', suggest);
    return () => removeEventListener('focusin', suggest);
  }, []);

  return (
    <div class="ways">
      {refusal && <Alert>{explain(refusal)}</Alert>}
      <Button
        kind="secondary"
        isBusy={busy !== ''}
        busy={text('entry.passkey.busy')}
        onClick={() => void logIn(() => passkeyFor('login'))}
      >
        {text('entry.passkey.logIn')}
      </Button>
    </div>
  );
}

/** The passkey that the user picks among the suggestions. Where none can be suggested, there still is the button. */
async function suggestion() {
  try {
    return (await canSuggestPasskeys()) ? await passkeyFor('login', { isSuggested: true }) : undefined;
  } catch {
    return undefined;
  }
}

function explain(refusal: Refusal): ComponentChildren {
  if (refusal.code !== 'ACCOUNT_DELETED') return sentenceFor(refusal);
  return (
    <>
      {text('entry.restore.deleted')}{' '}
      {markup('entry.passkey.restore', { link: (label) => <a href={pagePaths.forgotPassword}>{label}</a> })}
    </>
  );
}
