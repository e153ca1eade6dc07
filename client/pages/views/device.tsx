import type { AuthorizationsDeviceOutput } from 'account-client';
import { useState } from 'preact/hooks';
import { pagePaths } from '../../../server/shared/page-paths.ts';
import { readProfile } from '../account-menu/account-menu.tsx';
import { api, type Refusal, refusalIn } from '../api.ts';
import { TextField } from '../form/fields.tsx';
import { Alert, Button, Form } from '../form/form.tsx';
import { useForm } from '../form/use-form.ts';
import { markup, text } from '../language/texts.ts';
import { Page } from '../page.tsx';
import { useSessionData } from '../session/use-session-data.ts';
import { rememberPage } from '../session/way-back.ts';
import { type Answer, Consent } from './consent.tsx';
import { LinkOutcome } from './mailed-links/link-outcome.tsx';
import { OneMoment } from './one-moment.tsx';
import { Unreachable } from './unreachable.tsx';

const given = new URLSearchParams(location.search).get('user_code') ?? '';

/** A device without a browser asks for access: the user enters its code, and allows it or not. */
export function Device() {
  const { data: session, refusal } = useSessionData(readProfile);
  const [asked, setAsked] = useState<AuthorizationsDeviceOutput>();
  if (refusal) return <Unreachable refusal={refusal} />;
  if (!session) return <OneMoment />;
  return asked ? <Question first={asked} /> : <CodeForm onAsked={setAsked} />;
}

/** Resolves to undefined if the browser leaves: for a login, or because this page shows a user who is logged out. */
async function send(userCode: string, answer: Answer = {}) {
  const next = await api.authorizations.device.mutate({ userCode, ...answer }).catch((error: unknown) => {
    if (['UNAUTHENTICATED', 'OTHER_USER'].includes(refusalIn(error).code ?? '')) return undefined;
    throw error;
  });
  if (next && next.step !== 'login') return next;
  const query = `${new URLSearchParams({ user_code: userCode })}`;
  if (next) rememberPage(query);
  location.replace(next ? pagePaths.logIn : `?${query}`);
  return undefined;
}

function CodeForm({ onAsked }: { onAsked(asked: AuthorizationsDeviceOutput): void }) {
  const { field, isBusy, form } = useForm({
    initial: { userCode: given },
    required: { userCode: text('entry.device.missing') },
    isFocused: true,
    async send({ userCode }) {
      const next = await send(userCode);
      if (next) onAsked(next);
      return undefined;
    },
    explain: ({ code }) =>
      code === 'NOT_FOUND' ? { field: 'userCode', message: text('entry.device.unknown') } : undefined,
  });
  return (
    <Page title={text('entry.device.title')}>
      <p>{text('entry.device.instruction')}</p>
      <Form {...form}>
        <div class="code">
          <TextField
            field={field('userCode')}
            label={text('entry.device.code')}
            placeholder="XXXX-XXXX"
            type="letters"
            autocomplete="off"
          />
        </div>
        <Button isBusy={isBusy} busy={text('common.oneMoment')}>
          {text('entry.device.continue')}
        </Button>
      </Form>
    </Page>
  );
}

function Question({ first }: { first: AuthorizationsDeviceOutput }) {
  const [asked, setAsked] = useState(first);
  const { userCode = '' } = asked;
  const [busy, setBusy] = useState<boolean>();
  const [outcome, setOutcome] = useState<'allowed' | 'denied' | 'expired'>();
  const [refusal, setRefusal] = useState<Refusal>();

  const answer = async (chosen: Answer) => {
    setBusy(chosen.allow ?? true);
    try {
      const next = await send(userCode, chosen);
      if (next?.step === 'done') setOutcome(chosen.allow ? 'allowed' : 'denied');
      // The question has changed, such as by a second factor.
      else if (next) setAsked(next);
    } catch (error) {
      const found = refusalIn(error);
      if (found.code === 'NOT_FOUND') setOutcome('expired');
      else setRefusal(found);
    }
    setBusy(undefined);
  };

  if (refusal) return <Unreachable refusal={refusal} />;
  if (outcome)
    return (
      <LinkOutcome
        title={text(`entry.device.${outcome}.title`)}
        explanation={text(`entry.device.${outcome}.explanation`)}
      />
    );
  const title = text('entry.device.ask.title', { application: asked.application?.name ?? '' });
  return (
    <Consent title={title} asked={asked} busy={busy} onAnswer={(chosen) => void answer(chosen)}>
      <p>{markup('entry.device.ask.code', { code: <strong>{userCode}</strong> })}</p>
      <Alert>{text('entry.device.ask.warning')}</Alert>
    </Consent>
  );
}
