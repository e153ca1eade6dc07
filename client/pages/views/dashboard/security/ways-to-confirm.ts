import { hasPasskeys } from '../../../passkeys.ts';
import { settings } from '../../../settings.ts';
import { readLoginMethods } from './login-methods.ts';

/** Typed credentials, by their names in `auth.reauthenticate`. */
export type Typed = 'password' | 'code';

/** The credentials that the user can confirm with. */
export interface WaysToConfirm {
  typed: Typed | undefined;
  hasPasskey: boolean;
  providers: string[];
}

export const isEmpty = ({ typed, hasPasskey, providers }: WaysToConfirm) =>
  typed === undefined && providers.length === 0 && !hasPasskey;

export async function readWaysToConfirm(): Promise<WaysToConfirm> {
  const { identities, passkeys, app } = await readLoginMethods();
  const linked = identities.data.map(({ provider }) => provider);
  const hasPasskey = hasPasskeys && passkeys.data.length > 0;
  // With an app, neither a password nor a provider is enough.
  if (app.enabled) return { typed: 'code', hasPasskey, providers: [] };
  return {
    typed: identities.hasPassword ? 'password' : undefined,
    hasPasskey,
    providers: settings.reauthenticatingProviders.filter((provider) => linked.includes(provider)),
  };
}
