import type { CDPSession, Page } from 'playwright-core';

/** What the authenticator of a test does when it is asked. */
interface Behaviour {
  /** Whether its user is there: the first passkey that fits is used, and nobody has to touch anything. */
  isPresent?: boolean;
  /** Whether it recognizes its user. */
  isUserVerified?: boolean;
}

/** A passkey as Chromium's authenticators keep it. */
type Credential = Awaited<ReturnType<typeof credentialsOf>>[number];

const credentialsOf = async (devtools: CDPSession, authenticatorId: string) =>
  (await devtools.send('WebAuthn.getCredentials', { authenticatorId })).credentials;

/**
 * Adds an authenticator of Chromium's own, for passkeys, to a page: https://chromedevtools.github.io/devtools-protocol/tot/WebAuthn/.
 * It lives as long as the page does.
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
    /** In place of all that it has. */
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
