/** What an application asks for when it sends a browser to log out (OpenID Connect RP-Initiated Logout 1.0). */
import type { Provider } from 'oidc-provider';
import { z } from 'zod';
import { postLogoutRedirectUrisOf } from './clients.ts';

export interface LogoutRequest {
  idTokenHint?: string | undefined;
  clientId?: string | undefined;
  postLogoutRedirectUri?: string | undefined;
  state?: string | undefined;
}

export interface CheckedLogout {
  /** The user of the ID token: its application knows that the user wants to log out. */
  userId?: string | undefined;
  /** Where the browser goes afterwards. */
  location?: string | undefined;
}

const claims = z.object({ sub: z.string(), aud: z.string() });

/** The audience that a token names, which nobody has checked. */
function audienceIn(token = ''): string | undefined {
  try {
    return claims.parse(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())).aud;
  } catch {
    return undefined;
  }
}

function withState(uri: string, state: string | undefined): string {
  if (state === undefined) return uri;
  return `${uri}${uri.includes('?') ? '&' : '?'}${new URLSearchParams({ state })}`;
}

/**
 * An ID token that we signed for the application, expired or not, gives the user. A registered address gives the
 * location. An invalid ID token voids both.
 */
export async function checkLogout(
  provider: Provider,
  { idTokenHint, clientId, postLogoutRedirectUri = '', state }: LogoutRequest,
): Promise<CheckedLogout> {
  const client = await provider.Client.find(clientId ?? audienceIn(idTokenHint) ?? '');
  if (!client) return {};
  const location = postLogoutRedirectUrisOf(client).includes(postLogoutRedirectUri)
    ? withState(postLogoutRedirectUri, state)
    : undefined;
  if (idTokenHint === undefined) return { location };
  try {
    const { payload } = await provider.IdToken.validate(idTokenHint, client);
    return { userId: claims.parse(payload).sub, location };
  } catch {
    return {};
  }
}
