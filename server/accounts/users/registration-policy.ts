import type { Config } from '../config/index.ts';

/**
 * Who may have an account (REGISTRATION). An invitation lets its address in whatever the domains are, but for `closed`, in
 * which no account is made at all. Users who have an account log in, and link identities to it, in every mode. Addresses are
 * normalized.
 */
export const createRegistrationPolicy = ({ mode, domains }: Config['registration']) => {
  const isOfDomains = (email: string): boolean => {
    const host = email.slice(email.indexOf('@') + 1);
    return domains.some((domain) => (domain.startsWith('*.') ? host.endsWith(domain.slice(1)) : host === domain));
  };

  return {
    /** Whether an account may be made for the address without an invitation. */
    admits: (email: string): boolean => mode === 'open' || (mode === 'domains' && isOfDomains(email)),
    /** Whether an invitation lets its address in. */
    takesInvitations: mode !== 'closed',
    /** Whether an account that is there may change to the address. */
    allowsChangeTo: (email: string): boolean => mode !== 'domains' || isOfDomains(email),
  };
};

export type RegistrationPolicy = ReturnType<typeof createRegistrationPolicy>;
