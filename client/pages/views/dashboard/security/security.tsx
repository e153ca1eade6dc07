import { useEffect, useRef, useState } from 'preact/hooks';
import { type Profile, type Refusal, refusalIn } from '../../../api.ts';
import { Alert } from '../../../form/form.tsx';
import { sentenceFor } from '../../../form/use-form.ts';
import { text } from '../../../language/texts.ts';
import { sessionEnded } from '../../session-ended.tsx';
import { Skeleton } from '../../skeleton.tsx';
import { DashboardPage } from '../dashboard-page.tsx';
import { AppCard } from './app-card.tsx';
import { EmailCard } from './email-card.tsx';
import { KeysCard } from './keys-card.tsx';
import { LinkedLogins } from './linked-logins.tsx';
import { type LoginMethods, readLoginMethods } from './login-methods.ts';
import { PasskeysCard } from './passkeys-card.tsx';
import { PasswordCard } from './password-card.tsx';
import { useOpenRow } from './use-open-row.ts';

/** The login methods of the user. */
export function Security() {
  return (
    <DashboardPage title={text('dashboard.parts.security')}>
      {(profile) => <LoginMethodRows profile={profile} />}
    </DashboardPage>
  );
}

/** The rows depend on each other, so a change in one updates all. */
function LoginMethodRows({ profile }: { profile: Profile }) {
  const [methods, setMethods] = useState<LoginMethods>();
  const [refusal, setRefusal] = useState<Refusal>();
  const row = useOpenRow();

  /** The newest reading decides: an older one may be answered after it. */
  const turn = useRef(0);

  const load = async () => {
    turn.current += 1;
    const own = turn.current;
    try {
      const found = await readLoginMethods();
      if (own !== turn.current) return;
      setMethods(found);
      setRefusal(undefined);
    } catch (error) {
      if (own === turn.current) setRefusal(refusalIn(error));
    }
  };
  useEffect(() => void load(), []);

  return (
    <>
      {refusal && <Alert>{sessionEnded(refusal)?.message ?? sentenceFor(refusal)}</Alert>}
      <div class="card rows">
        <EmailCard row={row('email')} profile={profile} />
        {methods && (
          <>
            <PasswordCard
              row={row('password')}
              name={profile.name}
              email={profile.email}
              hasPassword={methods.identities.hasPassword}
              onChange={() => void load()}
            />
            <PasskeysCard row={row('passkeys')} passkeys={methods.passkeys.data} onChange={load} />
            <AppCard row={row('app')} status={methods.app} email={profile.email} onChange={load} />
            <LinkedLogins row={row('logins')} methods={methods.identities} onChange={load} />
            <KeysCard row={row('keys')} keys={methods.keys.data} onChange={load} />
          </>
        )}
        {!methods && !refusal && <Skeleton />}
      </div>
    </>
  );
}
