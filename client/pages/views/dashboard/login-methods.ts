import type { IdentitiesListOutput, PasskeysListOutput, TotpStatusOutput } from 'account-client';
import { api } from '../../api.ts';

/** All that the user logs in with. */
export interface LoginMethods {
  /** With whether there is a password. */
  identities: IdentitiesListOutput;
  passkeys: PasskeysListOutput;
  app: TotpStatusOutput;
}

/** In one request. */
export async function readLoginMethods(): Promise<LoginMethods> {
  const [identities, passkeys, app] = await Promise.all([
    api.identities.list.query(),
    api.passkeys.list.query(),
    api.totp.status.query(),
  ]);
  return { identities, passkeys, app };
}
