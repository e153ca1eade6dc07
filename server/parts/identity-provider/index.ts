import type { IdentityProviderClient } from '../../config/identity-providers.ts';
import { lazy } from '../../lazy.ts';
import type { IdentityProvider } from './contract.ts';

/**
 * By the provider's name. Makes no call yet: a provider that is down stops only the users who log in through it. Its
 * protocol is loaded with the first login.
 */
export const openIdentityProviders = (
  clients: ReadonlyMap<string, IdentityProviderClient>,
): ReadonlyMap<string, IdentityProvider> =>
  new Map(
    [...clients].map(([name, client]) => {
      const provider = lazy(() => open(client));
      return [
        name,
        {
          begin: async (flow) => (await provider()).begin(flow),
          finish: async (callback, secrets) => (await provider()).finish(callback, secrets),
        },
      ];
    }),
  );

const open = async (client: IdentityProviderClient): Promise<IdentityProvider> =>
  client.kind === 'github'
    ? (await import('./github.ts')).githubProvider(client)
    : (await import('./oidc.ts')).oidcProvider(client);
