import { settings } from './settings.ts';

const { mode, domains } = settings.registration;

/** Whether users can create an account who were not invited. */
export const isOpenToNew = mode === 'open' || mode === 'domains';

/** `at example.com or below example.org`. */
const places = new Intl.ListFormat('en', { type: 'disjunction' }).format(
  domains.map((domain) => (domain.startsWith('*.') ? `below ${domain.slice(2)}` : `at ${domain}`)),
);

/** Which addresses are let in, where not every one is. */
export const addressHint = mode === 'domains' ? `Accounts here are for addresses ${places}.` : undefined;

const reasons = {
  open: 'No account can be created here with this email.',
  domains: `${addressHint} Others need an invitation.`,
  invited: 'Accounts here are by invitation, for the email that the invitation was sent to.',
  closed: 'No new accounts are created here.',
};

/** Why no account was created. */
export const reason = reasons[mode];

/** After a login through a provider that leads to no account. */
export function RegistrationClosed() {
  return (
    <>
      This login belongs to no account yet. {reason} If you have an account, log in to it as you did before, and link
      this login on the Security page.
    </>
  );
}
