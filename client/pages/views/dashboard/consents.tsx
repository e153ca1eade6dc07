import type { ConsentsListOutput } from 'account-client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { api } from '../../api.ts';
import { Button } from '../../form/form.tsx';
import { useAction } from '../../form/use-action.ts';
import { Icon } from '../../icons/icon.tsx';
import { dateTime } from '../../language/format.ts';
import { markup, text } from '../../language/texts.ts';
import { Skeleton } from '../skeleton.tsx';
import { hasTerms, TermsLinks } from '../terms.tsx';
import { Outcome } from './outcome.tsx';

/** The current version of the terms, if the user has not accepted it yet. */
const toAcceptOf = ({ data, current }: ConsentsListOutput): string | undefined =>
  data.some(({ version }) => version === current) ? undefined : current;

/** The terms that the user has accepted, and when. Empty if the service has no terms. */
export function Consents() {
  const [consents, setConsents] = useState<ConsentsListOutput>();
  const { busy, refusal, notice, act } = useAction();
  const heading = useRef<HTMLHeadingElement>(null);

  const load = async () => setConsents(await api.consents.list.query());
  useEffect(() => {
    void act('load', () => load().then(() => undefined));
  }, []);

  const toAccept = consents && toAcceptOf(consents);
  const accept = (version: string) =>
    act('accept', async () => {
      await api.consents.accept.mutate({ version });
      await load();
      // The pressed button is gone.
      heading.current?.focus();
      return text('dashboard.terms.accepted');
    });

  if (!hasTerms && !refusal && !consents?.data.length && toAccept === undefined) return null;
  return (
    <section class="card" aria-labelledby="terms">
      <h2 id="terms" ref={heading} tabIndex={-1}>
        {text('dashboard.terms.title')}
      </h2>
      <div class="stack">
        <Outcome refusal={refusal} notice={notice} />
        {!consents && !refusal && <Skeleton />}
        {hasTerms && consents && <p>{markup('dashboard.terms.documents', { links: <TermsLinks /> })}</p>}
        {consents && consents.data.length > 0 && (
          <ul class="entries">
            {consents.data.map(({ version, acceptedAt }) => (
              <li key={version}>
                <div>
                  <strong>{version}</strong>
                  <p class="hint">{text('dashboard.terms.acceptedOn', { time: dateTime(acceptedAt) })}</p>
                </div>
              </li>
            ))}
          </ul>
        )}
        {toAccept !== undefined && (
          <>
            <p>{text('dashboard.terms.toAccept', { version: toAccept })}</p>
            <Button isBusy={busy === 'accept'} busy={text('common.oneMoment')} onClick={() => void accept(toAccept)}>
              {text('dashboard.terms.accept')}
            </Button>
          </>
        )}
      </div>
    </section>
  );
}

/**
 * Whether the page shows `TermsNotice`: not on that of the consents. Read together with the profile, so that the notice
 * moves nothing.
 */
export async function hasTermsToAccept(): Promise<boolean> {
  if (!hasTerms || location.pathname === pagePaths.data) return false;
  // If it cannot be read now, the next page asks.
  return api.consents.list.query().then(
    (consents) => toAcceptOf(consents) !== undefined,
    () => false,
  );
}

/** A link to accept terms newer than the account. */
export function TermsNotice() {
  return (
    <div class="notice" role="status">
      <Icon name="info" />
      <div>{markup('dashboard.terms.notice', { link: (label) => <a href={pagePaths.data}>{label}</a> })}</div>
    </div>
  );
}
