import { upgradeToPasskey } from 'account-client/passkeys';
import { api } from '../api.ts';
import { hasPasskeys, tellOfPasskeys } from '../passkeys.ts';

/** The browser leaves the page then, whatever is under way. */
const MAX_MS = 2000;

/**
 * Lets the browser add a passkey after a login by password, and then tells it which ones are valid. Shows nothing, and
 * never rejects.
 */
export async function afterLogin(user: { name: string; email: string }): Promise<void> {
  if (!hasPasskeys) return;
  const signal = AbortSignal.timeout(MAX_MS);
  const ended = new Promise((resolve) => signal.addEventListener('abort', resolve));
  const talk = async () => {
    await upgradeToPasskey(api, { signal }).catch(() => undefined);
    // After an abort the service may still add a passkey: a list without it would make the browser forget it.
    if (!signal.aborted) await tellOfPasskeys(user);
  };
  await Promise.race([talk(), ended]);
}
