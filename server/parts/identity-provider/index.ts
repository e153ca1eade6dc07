import type { IdentityProviderClient } from '../../config/identity-providers.ts';
import type { IdentityProvider } from './contract.ts';
import { githubProvider } from './github.ts';
import { oidcProvider } from './oidc.ts';

/** By the provider's name. Makes no call yet: a provider that is down stops only the users who log in through it. */
export const openIdentityProviders = (
  clients: ReadonlyMap<string, IdentityProviderClient>,
): ReadonlyMap<string, IdentityProvider> =>
  new Map(
    [...clients].map(([name, client]) => [
      name,
      client.kind === 'github' ? githubProvider(client) : oidcProvider(client),
    ]),
  );
