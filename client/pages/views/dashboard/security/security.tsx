import { useEffect, useState } from 'preact/hooks';
import { type Profile, type Refusal, refusalIn } from '../../../api.ts';
import { Alert } from '../../../form/form.tsx';
import { sentenceFor } from '../../../form/use-form.ts';
import { text } from '../../../language/texts.ts';
import { sessionEnded } from '../../session-ended.tsx';
import { DashboardPage } from '../dashboard-page.tsx';
import { AppCard } from './app-card.tsx';
import { EmailCard } from './email-card.tsx';
import { KeysCard } from './keys-card.tsx';
import { LinkedLogins } from './linked-logins.tsx';
import { type LoginMethods, readLoginMethods } from './login-methods.ts';
import { PasskeysCard } from './passkeys-card.tsx';
import { PasswordCard } from './password-card.tsx';

/** The login methods of the user. */
export function Security() {
  return (
    <DashboardPage title={text('dashboard.parts.security')}>
      {(profile) => <LoginMethodCards profile={profile} />}
    </DashboardPage>
  );
}

/** The cards depend on each other, so a change in one updates all. */
function LoginMethodCards({ profile }: { profile: Profile }) {
  const [methods, setMethods] = useState<LoginMethods>();
  const [refusal, setRefusal] = useState<Refusal>();

  const load = async () => {
    try {
      setMethods(await readLoginMethods());
      setRefusal(undefined);
    } catch (error) {
      setRefusal(refusalIn(error));
    }
  };
  useEffect(() => void load(), []);

  return (
    <>
      <EmailCard profile={profile} />
      {refusal && <Alert>{sessionEnded(refusal)?.message ?? sentenceFor(refusal)}</Alert>}
      {methods && (
        <>
          <PasswordCard
            email={profile.email}
            hasPassword={methods.identities.hasPassword}
            onChange={() => void load()}
          />
          <PasskeysCard passkeys={methods.passkeys.data} onChange={load} />
          <AppCard status={methods.app} email={profile.email} onChange={load} />
          <LinkedLogins methods={methods.identities} onChange={load} />
          <KeysCard keys={methods.keys.data} onChange={load} />
        </>
      )}
      {!methods && !refusal && <p aria-busy="true">{text('common.oneMoment')}</p>}
    </>
  );
}
