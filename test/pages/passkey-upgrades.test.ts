import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { authenticatorFor } from '../contract/rig/passkey-scenario.ts';
import { eventsOf, loggedIn } from '../contract/rig/scenario.ts';
import type { Authenticator } from '../rig/client/authenticator.ts';
import { until } from '../rig/until.ts';
import { heading, inBrowser, press, said } from './browser.ts';

/*
 * Passkeys that the browser adds by itself, and what it is told about passkeys. Chromium's virtual authenticators never
 * answer `mediation: conditional` of a creation, so a software authenticator does.
 */

type Signal = [name: string, options: object];

/** Lets `authenticator` answer the page, and records the signals of the page. */
async function play(page: Page, authenticator: Authenticator): Promise<{ signals: Signal[]; created: string[] }> {
  const signals: Signal[] = [];
  const created: string[] = [];
  await page.exposeFunction('register', (mediation: string, options: Parameters<Authenticator['register']>[0]) => {
    created.push(mediation);
    return authenticator.register(options, { userPresent: false, userVerified: false });
  });
  await page.exposeFunction('assert', (options: Parameters<Authenticator['assert']>[0]) =>
    authenticator.assert(options),
  );
  await page.exposeFunction('signalled', (...signal: Signal) => signals.push(signal));
  await page.addInitScript(`
    const alphabet = 'base64url';
    const bytes = (text) => Uint8Array.fromBase64(text, { alphabet }).buffer;
    const text = (buffer) => new Uint8Array(buffer).toBase64({ alphabet, omitPadding: true });
    const credential = ({ id, type, response }) => ({
      id,
      type,
      rawId: bytes(id),
      getClientExtensionResults: () => ({}),
      response: {
        ...Object.fromEntries(
          Object.entries(response).flatMap(([name, value]) => (typeof value === 'string' ? [[name, bytes(value)]] : [])),
        ),
        getTransports: () => response.transports ?? [],
      },
    });
    navigator.credentials.create = async ({ mediation, publicKey: { challenge, rp, user } }) =>
      credential(await register(mediation, { challenge: text(challenge), rp, user: { id: text(user.id) } }));
    navigator.credentials.get = async ({ mediation, publicKey: { challenge, rpId } }) =>
      mediation === 'conditional' ? new Promise(() => {}) : credential(await assert({ challenge: text(challenge), rpId }));
    for (const name of ['signalAllAcceptedCredentials', 'signalCurrentUserDetails', 'signalUnknownCredential'])
      PublicKeyCredential[name] = (options) => signalled(name, options);
  `);
  return { signals, created };
}

inBrowser(['real'], (scenario) => {
  test('a login by password adds a passkey, and the browser hears of each change', async () => {
    const { stack, visit } = scenario();
    const { id, email, password, name } = await loggedIn(scenario());
    const authenticator = authenticatorFor(stack);
    const credentialId = authenticator.credentialId.toString('base64url');
    const own = { rpId: new URL(stack.appUrl).hostname, userId: Buffer.from(id).toString('base64url') };
    await visit(async (page) => {
      const { signals, created } = await play(page, authenticator);
      const heard = async (...signal: Signal) => {
        await until(() => signals.length > 0, { what: signal[0] });
        expect(signals.splice(0)).toContainEqual(signal);
      };
      await page.goto('/login');
      await page.getByLabel('Email').fill(email);
      await page.getByLabel('Password').fill(password);
      await press(page, 'Log in');
      await heading(page, 'Your profile');
      expect(created).toEqual(['conditional']);
      expect(await eventsOf(stack, id, 'passkey-added')).toHaveLength(1);
      expect(signals.splice(0)).toEqual([
        ['signalAllAcceptedCredentials', { ...own, allAcceptedCredentialIds: [credentialId] }],
        ['signalCurrentUserDetails', { ...own, name: email, displayName: name }],
      ]);

      await page.getByLabel('Name').fill('Ada King');
      await press(page, 'Save');
      await until(() => signals.length === 2, { what: 'the new name' });
      await heard('signalCurrentUserDetails', { ...own, name: email, displayName: 'Ada King' });

      await page.goto('/dashboard/security#passkeys');
      await press(page, 'Remove');
      await said(page, 'status', 'was removed.');
      await heard('signalAllAcceptedCredentials', { ...own, allAcceptedCredentialIds: [] });

      await page.context().clearCookies({ name: 'auth_session' });
      await page.goto('/login');
      await press(page, 'Log in with a passkey');
      await said(page, 'alert', 'This passkey was not accepted.');
      await heard('signalUnknownCredential', { rpId: own.rpId, credentialId });
    });
  });

  test('a browser that never answers delays no login for more than a moment', async () => {
    const { stack, visit } = scenario();
    const { id, email, password } = await loggedIn(scenario());
    await visit(async (page) => {
      await page.addInitScript('navigator.credentials.create = () => new Promise(() => {})');
      await page.goto('/login');
      await page.getByLabel('Email').fill(email);
      await page.getByLabel('Password').fill(password);
      await press(page, 'Log in');
      await heading(page, 'Your profile');
      expect(await eventsOf(stack, id, 'passkey-added')).toEqual([]);
    });
  });
});
