import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { relyingParty, Visitor } from '../contract/rig/relying-party.ts';
import { loggedIn, onStack } from '../contract/rig/scenario.ts';
import { withWebhooks } from '../contract/rig/webhook-scenario.ts';
import { ask } from '../rig/client/raw.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { requireBinary, requireFile } from '../rig/servers/debian.ts';
import { freePort } from '../rig/servers/port.ts';
import { type PrivateServer, startPrivateServer } from '../rig/servers/private-server.ts';
import { until } from '../rig/until.ts';

/** Apache with mod_auth_openidc of Debian as relying party, in front of a page that needs a login. */

const MODULES = '/usr/lib/apache2/modules';

async function startApache(port: number, { issuer, id, secret }: { issuer: string; id: string; secret: string }) {
  const file = await requireBinary({ names: ['apache2'], debianPackage: 'apache2' });
  await requireFile({ path: `${MODULES}/mod_auth_openidc.so`, debianPackage: 'libapache2-mod-auth-openidc' });
  const directory = temporaryDirectory('apache');
  // Its workers are of another user.
  chmodSync(directory, 0o755);
  mkdirSync(join(directory, 'pages'));
  writeFileSync(join(directory, 'pages/orders.txt'), 'orders');
  const url = `http://localhost:${port}`;
  const modules = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'headers', 'auth_openidc'];
  const configuration = `
    ServerName localhost
    ServerRoot ${directory}
    DefaultRuntimeDir ${directory}
    PidFile ${directory}/pid
    ErrorLog "|$/bin/sh -c 'cat >&2'"
    Listen 127.0.0.1:${port}
    ${modules.map((name) => `LoadModule ${name}_module ${MODULES}/mod_${name}.so`).join('\n')}
    User www-data
    Group www-data
    DocumentRoot ${directory}/pages
    OIDCProviderMetadataURL ${issuer}/.well-known/openid-configuration
    OIDCClientID ${id}
    OIDCClientSecret ${secret}
    OIDCRedirectURI ${url}/callback
    OIDCCryptoPassphrase a-passphrase-of-this-test
    OIDCScope "openid email"
    OIDCPKCEMethod S256
    <Location />
      AuthType openid-connect
      Require valid-user
      Header always set X-User "expr=%{REMOTE_USER}"
      Header always set X-Email "expr=%{req:OIDC_CLAIM_email}"
    </Location>
  `;
  writeFileSync(join(directory, 'apache.conf'), configuration);
  return startPrivateServer({
    name: 'apache2',
    url,
    port,
    directory,
    command: { file, args: ['-D', 'FOREGROUND', '-f', join(directory, 'apache.conf')], env: {} },
    answers: async () => (await fetch(url)).status === 401,
  });
}

/** A browser at Apache. `fetch` would say that it does not navigate, and get 401. */
class Browser {
  readonly #cookies = new Map<string, string>();

  async go(url: string | URL) {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await ask(String(url), { headers: { accept: 'text/html', ...(cookie && { cookie }) } });
    for (const line of answer.headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]*)=([^;]*)/.exec(line) ?? [];
      this.#cookies.set(name, value);
    }
    return answer;
  }
}

onStack(
  'embedded',
  (stack) => {
    const scenario = () => ({ stack: stack(), call: callerOf('rest', stack().url) });
    let apache: PrivateServer;
    let party: Awaited<ReturnType<typeof relyingParty>>;
    beforeAll(async () => {
      const port = await freePort();
      party = await relyingParty(scenario(), {
        redirectUris: [`http://localhost:${port}/callback`],
        scopes: ['openid', 'email'],
        backchannelLogoutUri: `http://127.0.0.1:${port}/callback?logout=backchannel`,
      });
      apache = await startApache(port, { issuer: stack().appUrl, id: party.id, secret: party.secret ?? '' });
    });
    afterAll(() => apache?.stop());

    const pageOf = () => `${apache.url}/orders.txt`;
    /** A login that a browser begins at Apache, up to the callback. */
    const begun = async (session: string) => {
      const [browser, visitor] = [new Browser(), new Visitor()];
      const sent = await browser.go(pageOf());
      expect(sent.status).toBe(302);
      const { id } = await party.visit(visitor, String(sent.headers['location']));
      const { callback } = await party.answer(session, id ?? '', visitor);
      return { browser, callback: callback as URL };
    };

    test('a user logs in to a page behind Apache', async () => {
      const user = await loggedIn(scenario());
      const { browser, callback } = await begun(user.session);
      const back = await browser.go(callback);
      expect([back.status, back.headers['location']]).toEqual([302, pageOf()]);
      const shown = await browser.go(pageOf());
      expect([shown.status, shown.body]).toEqual([200, 'orders']);
      expect(shown.headers['x-user']).toContain(user.id);
      expect(shown.headers['x-email']).toBe(user.email);
      expect((await new Browser().go(pageOf())).status).toBe(302);
    });

    test('a logout here ends the session at Apache, and no other one', async () => {
      const users = [await loggedIn(scenario()), await loggedIn(scenario())] as const;
      const [own, other] = [await begun(users[0].session), await begun(users[1].session)];
      for (const { browser, callback } of [own, other]) await browser.go(callback);
      expect((await own.browser.go(pageOf())).status).toBe(200);
      await scenario().call('auth.logout', {}, { session: users[0].session });
      await until(async () => (await own.browser.go(pageOf())).status === 302);
      expect((await other.browser.go(pageOf())).status).toBe(200);
    });

    test('it refuses an answer that another browser began, and one of another issuer', async () => {
      const { session } = await loggedIn(scenario());
      const [own, other] = [await begun(session), await begun(session)];
      const mixed = new URL(own.callback);
      mixed.searchParams.set('iss', 'https://evil.example.com');
      for (const callback of [other.callback, mixed]) {
        expect((await own.browser.go(callback)).headers['location']).not.toBe(pageOf());
        expect((await own.browser.go(pageOf())).status).toBe(302);
      }
    });
  },
  withWebhooks,
);
