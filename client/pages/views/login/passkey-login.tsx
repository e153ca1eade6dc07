import { useEffect, useRef } from 'preact/hooks';
import { Alert, Button } from '../../form/form.tsx';
import { useAction } from '../../form/use-action.ts';
import { sentenceFor } from '../../form/use-form.ts';
import { text } from '../../language/texts.ts';
import { canSuggestPasskeys, logInWith, passkeyFor } from '../../passkeys.ts';
import { logInAndContinue } from '../../session/log-in-and-continue.ts';
import { RestoreByReset } from './restore.tsx';

/** Renewed before the challenge expires (five minutes). */
const RENEWED_AFTER_MS = 4 * 60_000;

/** The button for a login by passkey. While it is shown, the email field suggests passkeys too. */
export function PasskeyLogin() {
  const { busy, refusal, act } = useAction();
  const suggestedAt = useRef(0);

  const logIn = (getAssertion: () => ReturnType<typeof passkeyFor>) =>
    act('passkey', async () => {
      suggestedAt.current = Date.now();
      try {
        await logInAndContinue(async () => logInWith(await getAssertion()));
      } catch (error) {
        // The browser has stopped suggesting; it starts again at the user's next step.
        suggestedAt.current = 0;
        throw error;
      }
      return undefined;
    });

  useEffect(() => {
    const suggest = async () => {
      if (Date.now() - suggestedAt.current < RENEWED_AFTER_MS) return;
      suggestedAt.current = Date.now();
      const assertion = await suggestion();
      if (assertion) await logIn(async () => assertion);
    };
    void suggest();
    addEventListener('focusin', suggest);
    return () => removeEventListener('focusin', suggest);
  }, []);

  return (
    <div class="ways">
      {refusal && <Alert>{refusal.code === 'ACCOUNT_DELETED' ? <RestoreByReset /> : sentenceFor(refusal)}</Alert>}
      <Button
        kind="secondary"
        icon="passkey"
        isBusy={busy !== ''}
        busy={text('entry.passkey.busy')}
        onClick={() => void logIn(() => passkeyFor('login'))}
      >
        {text('entry.passkey.logIn')}
      </Button>
    </div>
  );
}

/** Waits for a suggested passkey. If none can be suggested, the button remains. */
async function suggestion() {
  try {
    return (await canSuggestPasskeys()) ? await passkeyFor('login', { isSuggested: true }) : undefined;
  } catch {
    return undefined;
  }
}
