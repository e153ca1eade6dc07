import type { IdentityProviderClient } from '../../config/identity-providers.ts';
import { lazy } from '../../lib/lazy.ts';
import type { ProviderName } from '../../shared/method-names.ts';
import type { IdentityProvider, OpenedProvider } from './contract.ts';

/**
 * Returns the providers by name. Opens no connection: an unreachable provider affects only its own users. The protocol
 * is loaded at the first login.
 */
export const openIdentityProviders = (
  clients: ReadonlyMap<ProviderName, IdentityProviderClient>,
): ReadonlyMap<ProviderName, IdentityProvider> =>
  new Map(
    [...clients].map(([name, client]) => {
      const provider = lazy(() => open(client));
      return [
        name,
        {
          provesLogin: client.provesLogin,
          isTrustedForMfa: client.isTrustedForMfa,
          begin: async (flow) => (await provider()).begin(flow),
          finish: async (callback, secrets) => (await provider()).finish(callback, secrets),
        },
      ];
    }),
  );

const protocols: Record<
  IdentityProviderClient['kind'],
  () => Promise<(client: IdentityProviderClient) => OpenedProvider>
> = {
  oidc: async () => (await import('./oidc.ts')).oidcProvider,
  github: async () => (await import('./github.ts')).githubProvider,
  discord: async () => (await import('./discord.ts')).discordProvider,
  facebook: async () => (await import('./facebook.ts')).facebookProvider,
};

const open = async (client: IdentityProviderClient): Promise<OpenedProvider> =>
  (await protocols[client.kind]())(client);
