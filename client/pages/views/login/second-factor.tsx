import type { SecondFactorOutput } from 'account-client';
import { useRef, useState } from 'preact/hooks';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { api, refusalIn } from '../../api.ts';
import { CodeField } from '../../form/code-field.tsx';
import { TextField } from '../../form/fields.tsx';
import { Alert, Button, Form } from '../../form/form.tsx';
import { useAction } from '../../form/use-action.ts';
import { sentenceFor, useForm } from '../../form/use-form.ts';
import { text } from '../../language/texts.ts';
import { Page } from '../../page.tsx';
import { hasPasskeys, ifAccepted, passkeyFor } from '../../passkeys.ts';
import { afterLogin } from '../../session/after-login.ts';
import { leaving } from '../../session/leaving.ts';
import { endOfLogin } from '../../session/way-back.ts';

/** The second step of a login: a code from the authenticator app, or a replacement. */
export function SecondFactor() {
  const [kind, setKind] = useState<Kind>('code');
  const { busy, refusal, act } = useAction();
  const offered = offeredMethods();
  /** The login is completed once: the answer to a second attempt would be that none is pending. */
  const isCompleting = useRef(false);
  const complete: Complete = async (step) => {
    if (isCompleting.current) return;
    isCompleting.current = true;
    await completeBy(step).finally(() => {
      isCompleting.current = false;
    });
  };

  const usePasskey = () =>
    act('passkey', async () => {
      const passkey = await passkeyFor('second-factor');
      await complete(() => ifAccepted(api.auth.secondFactor.mutate({ passkey })));
      return undefined;
    });

  const others = (Object.keys(kinds) as Kind[]).filter((other) => other !== kind && offered(kinds[other]));
  return (
    <Page title={text('entry.secondFactor.title')}>
      {refusal && <Alert>{sentenceFor(refusal)}</Alert>}
      <p>{text(`entry.secondFactor.${kind}.instruction`)}</p>
      <TypedFactor key={kind} kind={kind} complete={complete} />
      <div class="ways">
        {hasPasskeys && offered('passkey') && (
          <Button kind="secondary" isBusy={busy === 'passkey'} busy={text('entry.passkey.busy')} onClick={usePasskey}>
            {text('entry.passkey.use')}
          </Button>
        )}
        {others.map((other) => (
          <Button key={other} kind="secondary" isBusy={false} busy="" onClick={() => setKind(other)}>
            {text(`entry.secondFactor.${other}.choose`)}
          </Button>
        ))}
      </div>
      <p class="aside">
        <a href={pagePaths.logIn}>{text('entry.secondFactor.someoneElse')}</a>
      </p>
    </Page>
  );
}

type Kind = 'code' | 'recoveryCode';

/** Their names in the methods of the first step. */
const kinds = { code: 'totp', recoveryCode: 'recovery' } as const;

type Complete = (step: () => Promise<SecondFactorOutput>) => Promise<void>;

function TypedFactor({ kind, complete }: { kind: Kind; complete: Complete }) {
  const { field, isBusy, form } = useForm({
    initial: { [kind]: '' } as Record<Kind, string>,
    required: { [kind]: text(`entry.secondFactor.${kind}.missing`) },
    isFocused: true,
    async send({ [kind]: given }) {
      await complete(() => api.auth.secondFactor.mutate({ [kind]: given }));
      return undefined;
    },
    explain(refusal) {
      if (refusal.code !== 'INVALID_CODE') return undefined;
      // Another kind of code is another text: the field starts empty.
      field(kind).onInput('');
      return { field: kind, message: text(`entry.secondFactor.${kind}.wrong`) };
    },
  });
  const { element } = form;
  return (
    <Form {...form}>
      {kind === 'code' ? (
        <CodeField
          field={field(kind)}
          label={text('entry.secondFactor.code.label')}
          submit={() => element.current?.requestSubmit()}
        />
      ) : (
        <TextField
          field={field(kind)}
          label={text('entry.secondFactor.recoveryCode.label')}
          hint={text('entry.secondFactor.recoveryCode.hint')}
          type="letters"
          autocomplete="off"
        />
      )}
      <Button isBusy={isBusy} busy={text('entry.logIn.busy')}>
        {text('entry.logIn.action')}
      </Button>
    </Form>
  );
}

/** Completes the login. If the login is no longer pending, returns to the login page. */
async function completeBy(step: () => Promise<SecondFactorOutput>): Promise<void> {
  try {
    const { user } = await step();
    await afterLogin(user);
  } catch (error) {
    if (refusalIn(error).code !== 'UNAUTHENTICATED') throw error;
    location.replace(`${pagePaths.logIn}?error=second_factor_ended`);
    return leaving();
  }
  location.replace(endOfLogin());
  return leaving();
}

/** The methods named by the first step. After a provider login they are not known, so all are offered. */
function offeredMethods(): (method: string) => boolean {
  const methods = new URLSearchParams(location.search).get('methods')?.split(',');
  return (method) => methods?.includes(method) ?? true;
}
