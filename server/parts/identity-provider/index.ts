import type { IdentityProviderClient } from '../../config/identity-providers.ts';
import { lazy } from '../../lazy.ts';
import type { IdentityProvider, OpenedProvider } from './contract.ts';

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
