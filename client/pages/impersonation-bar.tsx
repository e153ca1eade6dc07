import type { ProfileGetOutput } from 'account-client';
import { useProfile } from './account-menu/account-menu.tsx';
import { time } from './language/format.ts';
import { text } from './language/texts.ts';
import { LogOut } from './views/login/log-out.tsx';

interface Props {
  impersonation: NonNullable<ProfileGetOutput['impersonation']>;
  email: string;
}

/** Shows that an administrator acts for the user, with a button that ends it. */
export const ImpersonationBar = ({ impersonation: { expiresAt }, email }: Props) => (
  <section class="impersonation" aria-label={text('common.impersonation.label')}>
    <p>{text('common.impersonation.bar', { email, time: time(new Date(expiresAt * 1000)) })}</p>
    <LogOut label={text('common.impersonation.end')} />
  </section>
);

/** For pages that do not load the profile, and until it is loaded. */
export function OwnImpersonationBar() {
  const found = useProfile();
  if (!found?.impersonation) return null;
  return <ImpersonationBar impersonation={found.impersonation} email={found.user.email} />;
}
