import type { SecondFactorOutput } from 'account-client';
import { useEffect, useState } from 'preact/hooks';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { api, refusalIn } from '../../api.ts';
import { TextField } from '../../form/fields.tsx';
import { Alert, Button, Form } from '../../form/form.tsx';
import { useAction } from '../../form/use-action.ts';
import { sentenceFor, useForm } from '../../form/use-form.ts';
import { text } from '../../language/texts.ts';
import { Page } from '../../page.tsx';
import { hasPasskeys, ifAccepted, passkeyFor } from '../../passkeys.ts';
import { afterLogin } from '../../session/after-login.ts';
import { endOfLogin } from '../../session/way-back.ts';

/** The second step of a login: a code from the authenticator app, or a replacement. */
export function SecondFactor() {
  const [kind, setKind] = useState<Kind>('code');
  const { busy, refusal, act } = useAction();
  const offered = offeredMethods();

  const usePasskey = () =>
    act('passkey', () =>
      complete(async () => {
        const passkey = await passkeyFor('second-factor');
        return ifAccepted(api.auth.secondFactor.mutate({ passkey }));
      }),
    );

  const others = (Object.keys(kinds) as Kind[]).filter((other) => other !== kind && offered(kinds[other].method));
  return (
    <Page title={text('entry.secondFactor.title')}>
      {refusal && <Alert>{sentenceFor(refusal)}</Alert>}
      <p>{text(`entry.secondFactor.${kind}.instruction`)}</p>
      <TypedFactor key={kind} kind={kind} />
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

const kinds = {
  code: { method: 'totp', type: 'digits', autocomplete: 'one-time-code' },
  recoveryCode: { method: 'recovery', type: 'letters', autocomplete: 'off' },
} as const;

const isWhole = (code: string) => code.replace(/\s/g, '').length === 6;

function TypedFactor({ kind }: { kind: Kind }) {
  const { type, autocomplete } = kinds[kind];
  const { values, field, isBusy, form } = useForm({
    initial: { [kind]: '' } as Record<Kind, string>,
    required: { [kind]: text(`entry.secondFactor.${kind}.missing`) },
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

  useEffect(() => element.current?.querySelector('input')?.focus(), []);
  useEffect(() => {
    if (kind === 'code' && isWhole(values.code)) element.current?.requestSubmit();
  }, [values.code]);

  return (
    <Form {...form}>
      <TextField
        field={field(kind)}
        label={text(`entry.secondFactor.${kind}.label`)}
        hint={text(`entry.secondFactor.${kind}.hint`)}
        type={type}
        autocomplete={autocomplete}
      />
      <Button isBusy={isBusy} busy={text('entry.logIn.busy')}>
        {text('entry.logIn.action')}
      </Button>
    </Form>
  );
}

/** Completes the login. If the login is no longer pending, returns to the login page. */
async function complete(step: () => Promise<SecondFactorOutput>): Promise<undefined> {
  try {
    const { user } = await step();
    await afterLogin(user);
  } catch (error) {
    if (refusalIn(error).code !== 'UNAUTHENTICATED') throw error;
    location.replace(`${pagePaths.logIn}?error=second_factor_ended`);
    return;
  }
  location.replace(endOfLogin());
}

/** The methods named by the first step. After a provider login they are not known, so all are offered. */
function offeredMethods(): (method: string) => boolean {
  const methods = new URLSearchParams(location.search).get('methods')?.split(',');
  return (method) => methods?.includes(method) ?? true;
}
