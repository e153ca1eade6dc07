import type { CDPSession, Page } from 'playwright-core';

/** How a virtual authenticator reacts to a request. */
interface Behaviour {
  /** Whether its user is present: the first matching passkey is used without a touch. */
  isPresent?: boolean;
  /** Whether it verifies its user. */
  isUserVerified?: boolean;
}

/** A passkey as Chromium's authenticators store it. */
type Credential = Awaited<ReturnType<typeof credentialsOf>>[number];

const credentialsOf = async (devtools: CDPSession, authenticatorId: string) =>
  (await devtools.send('WebAuthn.getCredentials', { authenticatorId })).credentials;

/**
 * Adds a virtual authenticator of Chromium to a page: https://chromedevtools.github.io/devtools-protocol/tot/WebAuthn/.
 * It lives as long as the page.
 */
export async function addAuthenticator(page: Page, { isPresent = true, isUserVerified = true }: Behaviour = {}) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('WebAuthn.enable');
  const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified,
      automaticPresenceSimulation: isPresent,
    },
  });
  return {
    credentials: () => credentialsOf(devtools, authenticatorId),
    /** Replaces all its passkeys. */
    async keep(credentials: Credential[]): Promise<void> {
      await devtools.send('WebAuthn.clearCredentials', { authenticatorId });
      for (const credential of credentials) {
        await devtools.send('WebAuthn.addCredential', { authenticatorId, credential });
      }
    },
    setUserVerified: (isVerified: boolean) =>
      devtools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: isVerified }),
  };
}
