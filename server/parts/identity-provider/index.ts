import type { IdentityProviderClient } from '../../config/identity-providers.ts';
import type { IdentityProvider } from './contract.ts';
import { githubProvider } from './github.ts';
import { oidcProvider } from './oidc.ts';

/** Makes no call yet: a provider that is down stops only the users who log in through it. */
export const openIdentityProvider = (client: IdentityProviderClient): IdentityProvider =>
  client.kind === 'github' ? githubProvider(client) : oidcProvider(client);
