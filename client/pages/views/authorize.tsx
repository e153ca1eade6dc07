import { useEffect, useState } from 'preact/hooks';
import { pagePaths } from '../../../server/shared/page-paths.ts';
import { api, type Refusal, refusalIn } from '../api.ts';
import { askedLanguage } from '../language/asked-language.ts';
import { text } from '../language/texts.ts';
import { beforeLogin, keepDraft } from '../session/draft.ts';
import { rememberPage } from '../session/way-back.ts';
import { type Answer, type Asked, Consent } from './consent.tsx';
import { LinkOutcome } from './mailed-links/link-outcome.tsx';
import { OneMoment } from './one-moment.tsx';
import { Unreachable } from './unreachable.tsx';

const id = new URLSearchParams(location.search).get('id') ?? '';

/** Another application asks for a login. A session and an earlier consent answer it without a word. */
export function Authorize() {
  const [asked, setAsked] = useState<Asked>();
  const [refusal, setRefusal] = useState<Refusal>();
  const [busy, setBusy] = useState<boolean>();

  const proceed = async (answer: Answer = {}) => {
    setBusy(answer.allow ?? true);
    try {
      const next = await api.authorizations.proceed.mutate({ id, ...answer });
      if (next.location !== undefined) return location.replace(next.location);
      if (next.application) {
        setAsked(next);
        return setBusy(undefined);
      }
      if (next.loginHint !== undefined) keepDraft(beforeLogin, { email: next.loginHint });
      rememberPage();
      location.replace(pagePaths.logIn + askedLanguage());
    } catch (error) {
      setRefusal(refusalIn(error));
    }
  };
  useEffect(() => void proceed(), []);

  if (refusal?.code === 'NOT_FOUND')
    return <LinkOutcome title={text('entry.authorize.expired')} explanation={text('entry.authorize.startAgain')} />;
  if (refusal) return <Unreachable refusal={refusal} />;
  if (!asked?.application) return <OneMoment />;
  const title = text('entry.authorize.title', { application: asked.application.name });
  return <Consent title={title} asked={asked} busy={busy} onAnswer={(answer) => void proceed(answer)} />;
}
