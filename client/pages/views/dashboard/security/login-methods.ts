import type { IdentitiesListOutput, KeysListOutput, PasskeysListOutput, TotpStatusOutput } from 'account-client';
import { api } from '../../../api.ts';

/** All login methods of the user, and the access keys, which end with some changes of them. */
export interface LoginMethods {
  /** The identities, and whether there is a password. */
  identities: IdentitiesListOutput;
  passkeys: PasskeysListOutput;
  app: TotpStatusOutput;
  keys: KeysListOutput;
}

/** Loads all of them in one request. */
export async function readLoginMethods(): Promise<LoginMethods> {
  const [identities, passkeys, app, keys] = await Promise.all([
    api.identities.list.query(),
    api.passkeys.list.query(),
    api.totp.status.query(),
    api.keys.list.query(),
  ]);
  return { identities, passkeys, app, keys };
}
