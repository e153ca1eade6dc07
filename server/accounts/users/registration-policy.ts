/**
 * The registration policy (REGISTRATION). An invitation admits its address whatever the allowed domains are, except in
 * the mode `closed`, which creates no accounts. In every mode, existing users log in and link identities.
 */
import type { Config } from '../../config/index.ts';

/** Decides which addresses may have an account. Addresses are normalized. */
export const createRegistrationPolicy = ({ mode, domains }: Config['registration']) => {
  const isOfDomains = (email: string): boolean => {
    const host = email.slice(email.indexOf('@') + 1);
    return domains.some((domain) => (domain.startsWith('*.') ? host.endsWith(domain.slice(1)) : host === domain));
  };

  return {
    /** Whether an account may be created for the address without an invitation. */
    admits: (email: string): boolean => mode === 'open' || (mode === 'domains' && isOfDomains(email)),
    /** Whether invitations are accepted. */
    takesInvitations: mode !== 'closed',
    /** Whether an existing account may change to the address. */
    allowsChangeTo: (email: string): boolean => mode !== 'domains' || isOfDomains(email),
  };
};

export type RegistrationPolicy = ReturnType<typeof createRegistrationPolicy>;
