import type { Client } from '../api.ts';
import { isServiceError } from '../errors.ts';

/*
 * Signals to the browser (WebAuthn Level 3, section 5.1.10), so that it offers no passkey that the service refuses. A
 * browser without them, or that fails, ignores them.
 */

/**
 * Tells the browser which passkeys the logged-in user has, and with `user` the name and address that it shows. Call it
 * after a login, an addition or a removal, and after a change of name or address.
 */
export async function signalPasskeys(
  client: Pick<Client, 'passkeys'>,
  user?: { name: string; email: string },
): Promise<void> {
  const browser = signalsOf();
  if (!browser?.signalAllAcceptedCredentials) return;
  const { data, rpId, userHandle: userId } = await client.passkeys.list.query();
  const allAcceptedCredentialIds = data.map(({ credentialId }) => credentialId);
  await quietly(browser.signalAllAcceptedCredentials({ rpId, userId, allAcceptedCredentialIds }));
  if (!user || data.length === 0) return;
  await quietly(browser.signalCurrentUserDetails?.({ rpId, userId, name: user.email, displayName: user.name }));
}

/** After a login by passkey: tells the browser to offer the passkey no more if the service does not know it. */
export async function signalIfUnknown(error: unknown, { rpId, id }: { rpId: string; id: string }): Promise<void> {
  if (!isServiceError(error, 'INVALID_CREDENTIALS') || error.details?.['passkey']?.rule !== 'unknown') return;
  await quietly(signalsOf()?.signalUnknownCredential?.({ rpId, credentialId: id }));
}

type Signals = Partial<
  Pick<
    typeof PublicKeyCredential,
    'signalAllAcceptedCredentials' | 'signalCurrentUserDetails' | 'signalUnknownCredential'
  >
>;

const signalsOf = (): Signals | undefined => globalThis.PublicKeyCredential;

const quietly = (signal: Promise<void> | undefined) => signal?.catch(() => undefined);
