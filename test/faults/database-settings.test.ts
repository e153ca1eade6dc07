import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { join } from 'node:path';
import { MikroORM } from '@mikro-orm/sql';
import fc from 'fast-check';
import { Kysely, sql } from 'kysely';
import { createConnection } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDatabase } from '../../server/parts/database/index.ts';
import { mysqlDialect } from '../../server/parts/database/mysql-dialect.ts';
import { migrationOptions } from '../../server/parts/database/options.ts';
import { callerOf, type Reply } from '../contract/rig/callers.ts';
import { addPasskey, authenticatorFor } from '../contract/rig/passkey-scenario.ts';
import { loggedIn, PASSWORD, sessionIn } from '../contract/rig/scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { sendImage } from '../contract/uploads/storage.ts';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { freshSubject, identityClaims, loginsThrough, profileOf } from '../provider/login.ts';
import { anyCharacter, cases, seed } from '../rig/client/random.ts';
import { runDoctor } from '../rig/process/doctor.ts';
import { root } from '../rig/process/service.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { createDatabase, startMysql } from '../rig/servers/mysql.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { startRewritingProxy } from '../rig/servers/proxy.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { unlimited } from './load.ts';
import { documentedAt, inputsOf } from './operations.ts';
import { textFieldsOf, textsNamed } from './text-fields.ts';

/** Server settings that change the meaning of statements, unless the session sets its own. */
const settings: Record<string, string[]> = {
  'sql_mode=NO_BACKSLASH_ESCAPES': ['--sql-mode=NO_BACKSLASH_ESCAPES'],
  'sql_mode=ANSI,NO_BACKSLASH_ESCAPES': ['--sql-mode=ANSI,NO_BACKSLASH_ESCAPES'],
  'an empty sql_mode': ['--sql-mode='],
  'init_connect, latin1': ["--init-connect=SET NAMES latin1, sql_mode = 'NO_BACKSLASH_ESCAPES'"],
  'init_connect, checks': [
    '--init-connect=SET foreign_key_checks = 0, unique_checks = 0, sql_safe_updates = 1, sql_select_limit = 1, completion_type = 1',
  ],
  'autocommit=0': ['--autocommit=0'],
  'another isolation and time zone': ['--transaction-isolation=SERIALIZABLE', '--default-time-zone=+05:30'],
};

/** Of every session. */
const expected = {
  autocommit: 1,
  charset: 'utf8mb4',
  results: 'utf8mb4',
  collation: 'utf8mb4_unicode_ci',
  completion: 'NO_CHAIN',
  zone: '+00:00',
  foreignKeys: 1,
  uniqueKeys: 1,
  safeUpdates: 0,
  isNull: 0,
  selectLimit: '18446744073709551615',
  backslash: '\\',
  quoted: 'text',
};
const isolation = sql<{
  Value: string;
}>`show variables where variable_name in ('tx_isolation', 'transaction_isolation')`;
const values = sql<typeof expected>`select @@autocommit + 0 as autocommit, @@character_set_client as charset,
  @@character_set_results as results, @@collation_connection as collation, @@completion_type as completion,
  @@time_zone as zone, @@foreign_key_checks + 0 as foreignKeys, @@unique_checks + 0 as uniqueKeys,
  @@sql_safe_updates + 0 as safeUpdates, @@sql_auto_is_null + 0 as isNull,
  concat(@@sql_select_limit) as selectLimit, ${'\\'} as backslash, "text" as quoted`;

/** A server with these arguments, and a database with an ordinary account: init_connect does not apply to others. */
async function startServerWith(args: string[]): Promise<{ server: PrivateServer; databaseUrl: string }> {
  const server = await startMysql({ args });
  const databaseUrl = new URL(await createDatabase(server.url));
  const connection = await createConnection(server.url);
  await connection.query("create user app@'127.0.0.1' identified by 'app-password'");
  await connection.query(`grant all on ${databaseUrl.pathname.slice(1)}.* to app@'127.0.0.1'`);
  await connection.end();
  return { server, databaseUrl: Object.assign(databaseUrl, { username: 'app', password: 'app-password' }).href };
}

/** Text that ends a badly escaped literal, and text that other character sets lose. */
const hostile = fc.oneof(
  fc.constantFrom(
    "O'Brien",
    "zz' union select id, email, password_hash, 1, 1, 1 from users -- ",
    "x', role = 'admin' where 1 = 1 -- ",
    "\\', role = 'admin' -- ",
    `"\\" or 1 = 1 #`,
    '\\',
    "'",
    "\\'",
    'Größe 東京 👩‍👩‍👧 ß',
    '\u00bf\u0027 or 1',
    '\u0315\u5c00',
    '%_\\%\\_',
    "a'/*!50000 or 1=1 */",
    "'\ud800",
  ),
  fc.string({ unit: fc.constantFrom(...'\'"\\`%_;-#/*!?:() \u00a0aé東👩'), minLength: 1, maxLength: 40 }),
  fc.string({ unit: anyCharacter, minLength: 1, maxLength: 40 }),
);

const labels = { en: 'A field' };
const ownFields = [
  { name: 'username', type: 'text', maxLength: 100, labels, read: 'public', write: 'owner', unique: true },
  { name: 'motto', type: 'longText', maxLength: 100, labels, read: 'owner', write: 'owner' },
  { name: 'page', type: 'url', labels, read: 'public', write: 'owner' },
];
const fieldsFile = join(temporaryDirectory('settings'), 'fields.json');
writeFileSync(fieldsFile, JSON.stringify(ownFields));

const ofApplication = [
  'backchannelLogoutUri',
  'logoUrl',
  'name',
  'postLogoutRedirectUris',
  'redirectUris',
  'resources',
  'scopes',
];

const provider = await startHostileProvider();
const logInAs = loginsThrough(provider);
afterAll(() => provider.close());

/** Is accepted in most texts, and ends a literal that is not escaped, or by a backslash only. */
const QUOTED = "'or'1'='1";

/** The texts that the API shows, by the operations that store them. */
const shownTexts = {
  'auth.register': ['name', 'page', 'username'],
  'profile.update': ['avatar', 'bio', 'location', 'motto', 'name', 'page', 'username', 'website'],
  'users.setFields': ['page', 'username'],
  'users.invite': ['email'],
  'keys.create': ['name'],
  'passkeys.rename': ['name'],
  'webhooks.create': ['description', 'url'],
  'webhooks.update': ['description', 'url'],
  'applications.create': ofApplication,
  'applications.update': ofApplication,
};

describe.each(Object.entries(settings))('on a server with %s', (title, args) => {
  let server: PrivateServer;
  let databaseUrl: string;
  let stack: Stack;
  beforeAll(async () => {
    ({ server, databaseUrl } = await startServerWith(args));
    const env = {
      ...unlimited,
      LIMIT_UNIQUE_FIELD: '100000/3600',
      DATABASE_URL: databaseUrl,
      DATABASE_REPLICA_URLS: databaseUrl,
      PROFILE_FIELDS: fieldsFile,
      WEBHOOK_ALLOW: '127.0.0.0/8',
      ...environmentFor(provider),
    };
    stack = await startStack('real', { env });
  });
  afterAll(async () => {
    await stack?.stop();
    await server?.stop();
  });

  /** Bypasses the service and its snapshots: uses a connection of its own. */
  const look = async (statement: string, parameters: string[] = []) => {
    const { pathname } = new URL(databaseUrl);
    const connection = await createConnection(Object.assign(new URL(server.url), { pathname }).href);
    try {
      const [rows] = await connection.execute(statement, parameters);
      await connection.query('commit');
      return rows;
    } finally {
      connection.destroy();
    }
  };

  const administrators: { id: string }[] = [];
  const administrator = async () => {
    const admin = await loggedIn({ stack, call: callerOf('rest', stack.url) });
    await look("update users set role = 'admin' where id = ?", [admin.id]);
    administrators.push({ id: admin.id });
    return admin;
  };
  const expectNoOtherAdministrators = async () => {
    const found = await look("select id from users where role <> 'user'");
    expect(new Set(JSON.parse(JSON.stringify(found)))).toEqual(new Set(administrators));
  };

  // checks: 75
  test('every connection has the same settings: requests, replicas, migrations and the doctor', async () => {
    const config = { databaseUrl, databaseReplicaUrls: [databaseUrl], dataDir: '' };
    const database = await openDatabase(config);
    const orm = await MikroORM.init(await migrationOptions(config));
    const doctor = new Kysely<object>({ dialect: mysqlDialect(databaseUrl, { decides: false }) });
    try {
      await database.migrate();
      const sessions = {
        request: await database.query((tables) => values.execute(tables as never)),
        replica: await database.queryReplica((tables) => values.execute(tables as never)),
        transaction: await database.change((tables) => values.execute(tables)),
        migration: await values.execute(orm.em.fork().getKysely()),
        doctor: await values.execute(doctor),
      };
      for (const [name, { rows }] of Object.entries(sessions)) expect([name, rows]).toEqual([name, [expected]]);
      const { rows } = await database.change((tables) => isolation.execute(tables));
      expect(new Set(rows.map(({ Value }) => Value))).toEqual(new Set(['READ-COMMITTED']));
    } finally {
      await Promise.all([database.close(), orm.close(true), doctor.destroy()]);
    }
  });

  // checks: 75
  test(`text in any field is stored as sent or refused, and never becomes SQL (FUZZ_SEED=${seed})`, async () => {
    const call = callerOf('rest', stack.url);
    const scenario = { stack, call };
    const bystander = await loggedIn(scenario);
    const { session, id } = await loggedIn(scenario, { name: "O'Brien \\" });
    const admin = await administrator();
    expect((await call('users.get', { id })).data.data.name).toBe("O'Brien \\");
    const stored = { updates: 0, found: 0, registered: 0 };

    await fc.assert(
      fc.asyncProperty(hostile, async (text) => {
        const website = `https://example.test/?q=${text}`;
        await call('profile.update', { website, avatar: website }, { session });
        const update = await call('profile.update', { name: text, bio: text, location: text }, { session });
        expect([200, 400]).toContain(update.status);
        const { data } = await call('profile.get', undefined, { session });
        if (update.status === 200) {
          const sent = text.trim();
          expect(data.user).toMatchObject({ name: sent, bio: sent, location: sent });
          const bytes = Buffer.from(sent).toString('hex').toUpperCase();
          expect(await look('select hex(bio) as bytes from users where id = ?', [id])).toEqual([{ bytes }]);
          stored.updates++;
        }
        expect(data.user.id).toBe(id);

        const found = await call('users.list', { q: text });
        expect([200, 400]).toContain(found.status);
        for (const user of found.data?.data ?? []) {
          expect(user.id).toMatch(/^user_/);
          stored.found++;
        }
        // None of these searches may match.
        const refusals: Reply[] = [
          await call('auth.login', { email: text, password: text }),
          await call('auth.login', { email: `${text}@example.test`, password: text }),
          await call('auth.verifyEmail', { token: text }),
          await call('auth.resetPassword', { token: text, email: text, password: PASSWORD }),
          await call('sessions.end', { id: text.toWellFormed() }, { session }),
          await call('users.get', { id: `user_${text.toWellFormed()}` }),
          await call('passkeys.rename', { id: text.toWellFormed(), name: text }, { session }),
          await call('identities.unlink', { id: text.toWellFormed() }, { session }),
          await call('upload.remove', { name: text.toWellFormed() }, { session }),
          await call('activity.list', { cursor: text }, { session }),
        ];
        for (const { status } of refusals) expect([400, 401, 404]).toContain(status);
        for (const { status } of [
          await call('auth.forgotPassword', { email: `${text}@example.test` }),
          await call('users.find', { q: text }, { session: admin.session }),
          await call('users.invite', { email: `${text}@example.test` }, { session: admin.session }),
        ]) {
          expect([200, 201, 400]).toContain(status);
        }
      }),
      cases(15),
    );
    await fc.assert(
      fc.asyncProperty(hostile, async (name) => {
        const text = name.replace(/[^ -~]/g, '');
        const headers = { 'user-agent': text, 'accept-language': text, traceparent: text };
        const reply = await call('auth.register', { email: freshEmail(), password: PASSWORD, name }, { headers });
        expect([200, 201, 400]).toContain(reply.status);
        if (reply.status === 400) return;
        expect(reply.data.user.name).toBe(name.trim());
        stored.registered++;
      }),
      cases(10),
    );

    for (const [kind, count] of Object.entries(stored)) expect([kind, count > 0]).toEqual([kind, true]);
    const after = await call('profile.get', undefined, { session: bystander.session });
    expect(after.data.user).toMatchObject({ id: bystander.id, name: bystander.name });
    await expectNoOtherAdministrators();
  });

  // checks: 75
  test(`each text of each operation is read as it was sent, or refused (FUZZ_SEED=${seed})`, async () => {
    const call = callerOf('rest', stack.url);
    const other = await loggedIn({ stack, call });
    let { session } = await administrator();
    const known = (id?: string) => ({
      ...(id && { id }),
      get email() {
        return freshEmail();
      },
      get username() {
        return randomUUID();
      },
      returnTo: `${stack.appUrl}/basket`,
      url: 'http://127.0.0.1:9/hook',
      types: ['user.removed'],
      redirectUris: ['https://shop.example.com/callback'],
      logoUrl: 'https://shop.example.com/logo.png',
      page: 'https://example.com/ada',
    });
    const made = async (procedure: string, input: object) => (await call(procedure, input, { session })).data;
    const shop = { ...known(), name: 'Shop', kind: 'web', scopes: ['openid'] };
    const ids: Record<string, string> = {
      webhooks: (await made('webhooks.create', known())).webhook.id,
      applications: (await made('applications.create', shop)).application.id,
      passkeys: (await addPasskey(call, session, authenticatorFor(stack), QUOTED)).id,
      users: other.id,
    };
    const inputs = inputsOf(await documentedAt(stack.url));
    /** What shows the texts of an operation: a GET at its path, or at that of the collection. */
    const readingOf = ({ name, path }: (typeof inputs)[number]) => {
      if (name === 'auth.register' || name === 'users.setFields') return 'users.get';
      const places = [path, path.replace('/{id}', '')];
      return inputs.find((input) => input.method === 'GET' && places.includes(input.path))?.name;
    };
    const shown = new Set<string>();
    /** Other texts for each field, on each server. */
    let draw = seed + 1000 * Object.keys(settings).indexOf(title);
    // Logins through a provider have a test of their own.
    for (const input of inputs.filter(({ name }) => !name.startsWith('auth.idp.'))) {
      const { name, method, path, schema } = input;
      const reading = method === 'GET' ? undefined : readingOf(input);
      const id = ids[name.split('.')[0] ?? ''];
      for (const field of textFieldsOf(schema, known(id))) {
        const isEmail = field.name === 'email';
        const property = fc.asyncProperty(hostile, fc.boolean(), async (drawn, isAlone) => {
          const longer = isEmail ? `${drawn}${field.example}` : `${field.example}${drawn}`;
          const text = path.includes(`{${field.name}}`) ? longer.toWellFormed() : isAlone ? drawn : longer;
          const of = `${name}, ${field.name}: ${text}`;
          const reply = await call(name, field.valueWith(text), { session });
          expect(reply.status, of).toBeLessThan(500);
          session = sessionIn(reply) || session;
          if (reply.code || !reading) return;
          const read = await call(reading, { id: reply.data.user?.id ?? id }, { session });
          const found = textsNamed(field.name, read.data);
          if (found.length === 0) return;
          const isOfWebhook = name.startsWith('webhooks.') && field.name === 'url';
          const stored = isOfWebhook ? URL.parse(text)?.href : isEmail ? text.toLowerCase() : text.trim();
          expect(found, of).toContain(stored);
          shown.add(`${name} ${field.name}`);
        });
        await fc.assert(property, { ...cases(2), seed: draw++, examples: [[QUOTED, false]] });
      }
    }
    const expectedTexts = Object.entries(shownTexts).flatMap(([name, texts]) => texts.map((text) => `${name} ${text}`));
    expect([...shown]).toEqual(expect.arrayContaining(expectedTexts));
    const image = await sendImage({ stack }, session, { bytes: await png(), filename: QUOTED });
    expect(image).toMatchObject({ status: 200, body: { originalName: QUOTED } });
    await expectNoOtherAdministrators();
  });

  // checks: 75
  test(`claims of a provider are stored as sent, or refused (FUZZ_SEED=${seed})`, async () => {
    const property = fc.asyncProperty(hostile, async (text) => {
      const claims = identityClaims({
        sub: `${freshSubject()}${text}.`,
        name: `Ada ${text}.`,
        email: `${QUOTED}${freshEmail()}`,
      });
      const first = await logInAs(stack, claims);
      if (/[^ -~]/.test(text)) {
        expect(first).toMatchObject({ location: expect.stringMatching(/^\/login\?error=/), session: undefined });
        return;
      }
      const profile = await profileOf(stack, first.session);
      expect(profile).toMatchObject({ email: claims.email, name: claims.name });
      const again = await logInAs(stack, claims);
      expect((await profileOf(stack, again.session)).id).toBe(profile.id);
      const lie = await logInAs(stack, claims, { lie: { idToken: { iss: `${provider.url}${text}` } } });
      expect(lie.session).toBeUndefined();
    });
    await fc.assert(property, { ...cases(4), examples: [["O'Brien \\"]] });
    await expectNoOtherAdministrators();
  });
});

// checks: 75
describe('a connection is not used if its settings cannot be applied', () => {
  let server: PrivateServer;
  let databaseUrl: string;
  beforeAll(async () => {
    ({ server, databaseUrl } = await startServerWith(['--sql-mode=NO_BACKSLASH_ESCAPES', '--autocommit=0']));
  });
  afterAll(() => server?.stop());

  test.each([
    { what: 'the server refuses', from: ' sql_mode', to: ' sql_modx', reason: /sql_modx/ },
    { what: 'something in between drops: sql_mode', from: ' sql_mode', to: ' @ql_mode', reason: /did not reach/ },
    {
      what: 'something in between drops: names',
      from: 'names utf8mb4 collate utf8mb4_unicode_ci',
      to: 'names latin1 collate latin1_swedish_ci',
      reason: /did not reach/,
    },
    { what: 'something in between drops: autocommit', from: ' autocommit', to: ' @utocommit', reason: /did not reach/ },
  ])('$what', async ({ from, to, reason }) => {
    const proxy = await startRewritingProxy(server.port, { from, to });
    const url = Object.assign(new URL(databaseUrl), { port: String(proxy.port) }).href;
    const database = await openDatabase({ databaseUrl: url, dataDir: '' });
    try {
      await expect(database.pendingMigrations()).rejects.toThrow(reason);
      await expect(database.migrate()).rejects.toThrow(reason);
    } finally {
      await database.close();
      await proxy.stop();
    }
  });

  test('the doctor reports server settings that do not hold', async () => {
    const { lines } = await runDoctor({ DATABASE_URL: databaseUrl, DATA_DIR: temporaryDirectory('doctor') });
    expect(lines).toContainEqual(
      expect.stringMatching(
        /^warning database its own settings \(sql_mode without a strict mode, sql_mode NO_BACKSLASH_ESCAPES, autocommit=OFF\) do not apply here/,
      ),
    );
  });
});

test('connections to MySQL are opened in one file', async () => {
  const sources = await Array.fromAsync(glob('{server,routers,entities}/**/*.ts', { cwd: root }));
  const makers = sources.filter((file) =>
    /import (?!type)[^;]*from 'mysql2/.test(readFileSync(join(root, file), 'utf8')),
  );
  expect(makers).toEqual(['server/parts/database/mysql-connections.ts']);
});
