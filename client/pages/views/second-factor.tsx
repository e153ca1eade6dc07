import { useEffect, useState } from 'preact/hooks';
import { pagePaths } from '../../../server/page-paths.ts';
import { api, refusalIn } from '../api.ts';
import { TextField } from '../form/fields.tsx';
import { Alert, Button, Form } from '../form/form.tsx';
import { useAction } from '../form/use-action.ts';
import { sentenceFor, useForm } from '../form/use-form.ts';
import { Page } from '../page.tsx';
import { hasPasskeys, ifAccepted, passkeyFor } from '../passkeys.ts';

/** The second step of a login: a code of the authenticator app, or what takes its place. */
export function SecondFactor() {
  const [kind, setKind] = useState<Kind>('code');
  const { busy, refusal, act } = useAction();
  const offered = offeredMethods();

  const usePasskey = () =>
    act('passkey', () =>
      complete(async () => {
        const passkey = await passkeyFor('second-factor');
        await ifAccepted(api.auth.secondFactor.mutate({ passkey }));
      }),
    );

  const others = (Object.keys(kinds) as Kind[]).filter((other) => other !== kind && offered(kinds[other].method));
  return (
    <Page title="One more step">
      {refusal && <Alert>{sentenceFor(refusal)}</Alert>}
      <p>{kinds[kind].instruction}</p>
      <TypedFactor key={kind} kind={kind} />
      <div class="ways">
        {hasPasskeys && offered('passkey') && (
          <Button kind="secondary" isBusy={busy === 'passkey'} busy="Waiting for your passkey …" onClick={usePasskey}>
            Use a passkey
          </Button>
        )}
        {others.map((other) => (
          <Button key={other} kind="secondary" isBusy={false} busy="" onClick={() => setKind(other)}>
            {kinds[other].choose}
          </Button>
        ))}
      </div>
      <p class="aside">
        <a href={pagePaths.logIn}>Log in as someone else</a>
      </p>
    </Page>
  );
}

type Kind = 'code' | 'recoveryCode';

const kinds = {
  code: {
    method: 'totp',
    choose: 'Use a code of the app',
    instruction: 'Please enter the code that your authenticator app shows.',
    label: 'Code',
    hint: 'Six digits. The last one sends it.',
    type: 'digits',
    autocomplete: 'one-time-code',
    missing: 'Please enter the code that your app shows',
    wrong:
      'This code is not right, or was used before. Please enter the next one. If that does not help either, let your phone set its clock by itself: codes depend on the time.',
  },
  recoveryCode: {
    method: 'recovery',
    choose: 'Use a recovery code',
    instruction: 'Please enter one of the recovery codes that you kept when you turned the app on. Each works once.',
    label: 'Recovery code',
    hint: 'Dashes, spaces and capitals make no difference.',
    type: 'letters',
    autocomplete: 'off',
    missing: 'Please enter a recovery code',
    wrong: 'This is not one of your recovery codes, or it was used before.',
  },
} as const;

const isWhole = (code: string) => code.replace(/\s/g, '').length === 6;

function TypedFactor({ kind }: { kind: Kind }) {
  const { label, hint, type, autocomplete, missing, wrong } = kinds[kind];
  const { values, field, isBusy, form } = useForm({
    initial: { [kind]: '' } as Record<Kind, string>,
    required: { [kind]: missing },
    async send({ [kind]: given }) {
      await complete(() => api.auth.secondFactor.mutate({ [kind]: given }));
      return undefined;
    },
    explain(refusal) {
      if (refusal.code !== 'INVALID_CODE') return undefined;
      // Another code is another text: nothing of this one is typed again.
      field(kind).onInput('');
      return { field: kind, message: wrong };
    },
  });
  const { element } = form;

  useEffect(() => element.current?.querySelector('input')?.focus(), []);
  useEffect(() => {
    if (kind === 'code' && isWhole(values.code)) element.current?.requestSubmit();
  }, [values.code]);

  return (
    <Form {...form}>
      <TextField field={field(kind)} label={label} hint={hint} type={type} autocomplete={autocomplete} />
      <Button isBusy={isBusy} busy="Logging in …">
        Log in
      </Button>
    </Form>
  );
}

/** Completes the login; where none waits any more, it begins anew. */
async function complete(step: () => Promise<unknown>): Promise<undefined> {
  try {
    await step();
  } catch (error) {
    if (refusalIn(error).code !== 'UNAUTHENTICATED') throw error;
    location.replace(`${pagePaths.logIn}?error=second_factor_ended`);
    return;
  }
  location.replace(pagePaths.dashboard);
}

/** The methods that the first step has named. After a login through a provider that is not known: then every one. */
function offeredMethods(): (method: string) => boolean {
  const methods = new URLSearchParams(location.search).get('methods')?.split(',');
  return (method) => methods?.includes(method) ?? true;
}
