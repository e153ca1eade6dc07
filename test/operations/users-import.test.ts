import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import {
  eventsOf,
  expectRefusal,
  loggedIn,
  logIn,
  onBothStacks,
  onStack,
  PASSWORD,
  verified,
} from '../contract/rig/scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { sendImage } from '../contract/uploads/storage.ts';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { loginsThrough, profileOf } from '../provider/login.ts';
import { costlyHashes, foreignVectors, unknownHashes } from '../rig/foreign-hashes.ts';
import { runToItsEnd } from '../rig/process/command.ts';
import { root } from '../rig/process/service.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** `npm run users:import` and `npm run users:export`, beside a running service. */

const folder = temporaryDirectory('users');
const node = join(root, 'node_modules/.bin/node');
const provider = await startHostileProvider();
afterAll(() => provider.close());
const logInThrough = loginsThrough(provider);
const env = environmentFor(provider);

let files = 0;
const freshFile = () => join(folder, `${files++}.ndjson`);

const fileOf = (content: string | Buffer | readonly object[]): string => {
  const file = freshFile();
  const isRecords = typeof content !== 'string' && !Buffer.isBuffer(content);
  writeFileSync(file, isRecords ? content.map((record) => `${JSON.stringify(record)}\n`).join('') : content);
  return file;
};

const envOf = ({ services }: Stack) => ({ ...services[0]?.env });

const run = (stack: Stack, command: 'import' | 'export', ...args: string[]) => runWith(envOf(stack), command, ...args);

async function runWith(env: NodeJS.ProcessEnv, command: 'import' | 'export', ...args: string[]) {
  const { code, stdout, stderr } = await runToItsEnd(`users-${command}`, env, args);
  return { code, lines: stdout.trimEnd().split('\n'), stdout, stderr };
}

/** An import that can be killed. */
const startImport = (stack: Stack, file: string) =>
  spawn(node, ['server/cli/users-import.ts', file], {
    cwd: root,
    env: envOf(stack),
    stdio: ['ignore', 'pipe', 'inherit'],
  });

const importOf = (stack: Stack, content: Parameters<typeof fileOf>[0], ...options: string[]) =>
  run(stack, 'import', fileOf(content), ...options);

const vector = foreignVectors.find(({ from }) => from === 'bcrypt 2y') ?? { hash: '', password: '' };

const userWith = async ({ database }: Stack, email: string) =>
  (await database('select * from users where email = ?', [email.toLowerCase()]))[0];

const countOf = async ({ database }: Stack): Promise<number> =>
  Number((await database<{ count: number }>('select count(*) as count from users'))[0]?.count);

onBothStacks(
  (stack) => {
    const call = (...given: Parameters<ReturnType<typeof callerOf>>) => callerOf('rest', stack().url)(...given);

    test('imports all fields; the user logs in with the old password; only the first login is mailed', async () => {
      const email = freshEmail();
      const record = {
        email: email.toUpperCase(),
        name: 'Ådä Lovelace',
        bio: 'Two\nlines',
        location: 'London',
        website: 'https://example.com/ada',
        avatar: 'https://example.com/ada.png',
        emailVerified: true,
        passwordHash: vector.hash,
        createdAt: '2020-02-03T04:05:06.789+02:00',
      };
      expect(await importOf(stack(), [record])).toMatchObject({ code: 0, lines: ['1 imported, 0 skipped, 0 refused'] });
      const { id } = (await userWith(stack(), email)) as { id: string };
      const { passwordHash, createdAt, ...shown } = record;
      expect(await stack().database('select id from outbox where email = ?', [email])).toEqual([]);
      const session = await logIn(call, { email, password: vector.password, name: '' });
      // The service cannot know that the first to log in is the owner.
      await stack().waitForMail({ to: email, subject: 'New login' });
      expect((await call('profile.get', undefined, { session })).data.user).toEqual({
        ...shown,
        id,
        email,
        provider: 'email',
        createdAt: Math.floor(Date.parse(createdAt) / 1000),
      });
      expect((await call('users.list', { q: 'ada lovelace' })).data.data).toContainEqual(
        expect.objectContaining({ id }),
      );
      expect(await eventsOf(stack(), id, 'registered')).toEqual([{ method: 'import' }]);
      const [event] = await stack().database("select actor from activity where user_id = ? and kind = 'registered'", [
        id,
      ]);
      expect(event).toEqual({ actor: 'operator' });
      expect(await userWith(stack(), email)).toMatchObject({ password_proven: 1, password_browser: null });
      expect(await stack().mailsTo(email)).toHaveLength(1);
    });

    test('lists imported users in the order of their creation', async () => {
      const years = [2019, 2023, 2017, 2021];
      const records = years.map((year) => ({ email: freshEmail(), createdAt: Date.UTC(year, 5, 7) }));
      const later = { email: freshEmail() };
      await importOf(stack(), [...records, later]);
      const rows = await stack().database<{ email: string }>('select email from users order by id desc');
      const ours = new Set([...records, later].map(({ email }) => email));
      expect(rows.map(({ email }) => email).filter((email) => ours.has(email))).toEqual([
        later.email,
        ...[1, 3, 0, 2].map((i) => records[i]?.email),
      ]);
    });

    test('nothing of an unverified user counts as proven', async () => {
      const email = freshEmail();
      const identities = [{ provider: 'acme', subject: `s-${email}`, proven: true }];
      const record = { email, emailVerified: false, passwordHash: vector.hash, passwordProven: true, identities };
      expect((await importOf(stack(), [record])).code).toBe(0);
      expect(await userWith(stack(), email)).toMatchObject({ email_verified: 0, password_proven: 0 });
      const [identity] = await stack().database('select proven from identities where subject = ?', [`s-${email}`]);
      expect(identity).toEqual({ proven: 0 });
      expectRefusal(await call('auth.login', { email, password: vector.password }), 403, 'EMAIL_NOT_VERIFIED');
    });

    test('an imported identity logs in, named by issuer or by numeric id', async () => {
      const subjects = [`one-${freshEmail()}`, `two-${freshEmail()}`, 4_000_000_000 + Math.floor(Math.random() * 1e9)];
      const named = [{ provider: 'acme' }, { issuer: provider.url }, { provider: 'acme', issuer: provider.url }];
      const records = subjects.map((subject, i) => ({
        email: freshEmail(),
        name: `Person ${i}`,
        emailVerified: true,
        identities: [{ ...named[i], subject }],
      }));
      expect((await importOf(stack(), records)).code).toBe(0);
      for (const [i, subject] of subjects.entries()) {
        const { session } = await logInThrough(stack(), { sub: String(subject), email: freshEmail() });
        expect(await profileOf(stack(), session)).toMatchObject({ email: records[i]?.email, provider: 'acme' });
      }
      const proven = await stack().database('select proven from identities where subject = ?', [subjects[0] ?? '']);
      expect(proven).toEqual([{ proven: 1 }]);
    });

    test('existing users are kept, and a file can be imported again', async () => {
      const person = await verified({ stack: stack(), call });
      const before = await userWith(stack(), person.email);
      const others = [freshEmail(), freshEmail()];
      const content = [
        { email: person.email.toUpperCase(), name: 'Another', passwordHash: vector.hash, emailVerified: true },
        { email: others[0], name: 'First' },
        { email: others[0]?.toUpperCase(), name: 'Second' },
        { email: others[1] },
      ];
      const first = await importOf(stack(), content);
      expect(first).toMatchObject({ code: 0, stderr: '' });
      expect(first.lines).toEqual([
        'line 1: skipped: a user already has this address',
        'line 3: skipped: line 2 has this address',
        '2 imported, 2 skipped, 0 refused',
      ]);
      expect(await userWith(stack(), person.email)).toEqual(before);
      expect(await userWith(stack(), others[0] ?? '')).toMatchObject({ name: 'First' });
      const count = await countOf(stack());
      const again = await importOf(stack(), content);
      expect(again.lines.at(-1)).toBe('0 imported, 4 skipped, 0 refused');
      expect(again.lines[0]).toBe('lines 1 to 2: skipped: a user already has this address');
      expect(await countOf(stack())).toBe(count);
      await logIn(call, person);
    });

    test('refuses an identity of another user, and an email that can be restored', async () => {
      const subject = `taken-${freshEmail()}`;
      const identities = [{ provider: 'acme', subject }];
      await importOf(stack(), [{ email: freshEmail(), emailVerified: true, identities }]);
      const { id } = await verified({ stack: stack(), call });
      const former = freshEmail();
      await stack().database(
        `insert into email_changes (id, user_id, email, former, confirm_hash, undo_hash, created_at, confirmed_at, expires_at)
         values (?, ?, 'x@example.com', ?, ?, ?, 1, 1, ?)`,
        [
          `change-${files}-${stack().name}`,
          id,
          former,
          `c-${files}-${former}`.slice(0, 43),
          `u-${files}-${former}`.slice(0, 43),
          4e12,
        ],
      );
      const { code, lines } = await importOf(stack(), [{ email: freshEmail(), identities }, { email: former }]);
      expect(code).toBe(1);
      expect(lines).toEqual([
        'line 1: refused: an identity is linked to another user',
        'line 2: refused: a user had this address before an email change that can still be undone',
        '0 imported, 0 skipped, 2 refused',
      ]);
      expect(await userWith(stack(), former)).toBeUndefined();
    });

    test('a dry run prints the result of a run, and changes nothing', async () => {
      const content = [
        { email: freshEmail() },
        { email: freshEmail(), passwordHash: 'x' },
        ...Array.from({ length: 1200 }, () => ({ email: freshEmail() })),
      ];
      content.push({ email: content[0]?.email ?? '' });
      const count = await countOf(stack());
      const dry = await importOf(stack(), content, '--dry-run');
      expect(await countOf(stack())).toBe(count);
      expect(dry.lines.at(-1)).toBe('1201 would be imported, 1 skipped, 1 refused');
      const { lines, code } = await importOf(stack(), content);
      expect({ code, lines }).toEqual({
        code: dry.code,
        lines: dry.lines.map((line) => line.replace('would be imported', 'imported')),
      });
      expect(await countOf(stack())).toBe(count + 1201);
    });

    test('an export imported into an empty database keeps passwords, identities and profiles', async () => {
      const [known, foreign, external, unproven, blocked] = [
        { ...(await verified({ stack: stack(), call })), password: PASSWORD },
        { email: freshEmail(), password: vector.password },
        { email: freshEmail(), subject: `export-${freshEmail()}` },
        { email: freshEmail() },
        { email: freshEmail(), password: vector.password },
      ];
      await importOf(stack(), [
        {
          email: foreign.email,
          name: 'Grace',
          bio: 'x',
          language: 'fr',
          emailVerified: true,
          passwordHash: vector.hash,
          createdAt: 1e12,
        },
        { email: external.email, emailVerified: true, identities: [{ provider: 'acme', subject: external.subject }] },
        { email: unproven.email, emailVerified: true, passwordHash: vector.hash, passwordProven: false },
        { email: blocked.email, emailVerified: true, passwordHash: vector.hash, blocked: true },
      ]);
      const deleted = await verified({ stack: stack(), call });
      await stack().database('update users set deleted_at = 1 where id = ?', [deleted.id]);
      const file = freshFile();
      const exported = await run(stack(), 'export', file);
      expect(exported).toMatchObject({ code: 0, stdout: '', stderr: expect.stringMatching(/^\d+ users exported\n$/) });
      expect(statSync(file).mode & 0o777).toBe(0o600);
      const content = readFileSync(file, 'utf8');
      expect(content).not.toContain(deleted.email);
      expect((await run(stack(), 'export')).stdout).toBe(content);
      const refusedTwice = await run(stack(), 'export', file);
      expect(refusedTwice).toMatchObject({ code: 2, stderr: `${file} already exists\n` });

      const other = await startStack(stack().name, { env });
      try {
        const imported = await run(other, 'import', file);
        expect(imported).toMatchObject({ code: 0, stderr: '' });
        expect((await run(other, 'export')).stdout).toBe(content);
        const callOther = callerOf('rest', other.url);
        for (const { email, password } of [known, foreign]) await logIn(callOther, { email, password, name: '' });
        expectRefusal(await callOther('auth.login', blocked), 403, 'ACCOUNT_BLOCKED');
        const { session } = await logInThrough(other, { sub: external.subject, email: freshEmail() });
        expect(await profileOf(other, session)).toMatchObject({ email: external.email });
        expect(await userWith(other, unproven.email)).toMatchObject({ email_verified: 1, password_proven: 0 });
        expect(await userWith(other, foreign.email)).toMatchObject({ language: 'fr', browser_language: null });
      } finally {
        await other.stop();
      }
    });
  },
  { env },
);

describe('a file', () => {
  onStack(
    'embedded',
    (stack) => {
      test('is read in the formats that editors and databases write', async () => {
        const [first, second, third] = [freshEmail(), freshEmail(), freshEmail()];
        const content = `\ufeff{"email":"${first}"}\r\n\r\n  \n {"email":"${second}"} \r\n{"email":"${third}"}`;
        expect((await importOf(stack(), content)).lines).toEqual(['3 imported, 0 skipped, 0 refused']);
        for (const email of [first, second, third]) expect(await userWith(stack(), email)).toBeDefined();
      });

      const bad: [string, object | string | Buffer, string][] = [
        ['no JSON', '{"email"', 'Must be a JSON object'],
        ['an array', '[]', 'Must be a JSON object'],
        ['null', 'null', 'Must be a JSON object'],
        ['bytes that are no UTF-8', Buffer.from([0x7b, 0xff, 0xfe]), 'is not in UTF-8'],
        ['a line without end', `{"email":"${'x'.repeat(300_000)}`, 'is longer than 65536 bytes'],
        ['an unknown field', { passwordhash: 'x' }, 'Has unknown fields: passwordhash'],
        [
          'an unknown field with a secret for its name',
          { 'a secret': 1 },
          'Has unknown fields: (a name of other characters)',
        ],
        ['no address', { email: undefined }, 'email: Invalid input: expected string, received undefined'],
        ['an invalid address', { email: 'josé@example.com' }, 'email: Must be a valid email address'],
        ['a name of one character', { name: 'x' }, 'name: Must have at least 2 characters'],
        ['a website that is a script', { website: 'javascript:1' }, 'website: Must be an http or https URL'],
        ['an unknown language', { language: 'it' }, 'language: Must be one of en, de, fr, es'],
        ['NUL in a text', { bio: 'a\0b' }, 'bio: Contains characters that are not allowed'],
        [
          'a time in seconds',
          { createdAt: 1_600_000_000 },
          'createdAt: Must be after 1975: in milliseconds, not in seconds',
        ],
        [
          'a time without offset',
          { createdAt: '2020-01-02T03:04:05' },
          'createdAt: Must be a time in ISO 8601 with its offset, or in milliseconds since 1970',
        ],
        ['a time that is to come', { createdAt: '2999-01-01T00:00:00Z' }, 'createdAt: Must not be in the future'],
        [
          'text for a boolean',
          { emailVerified: 'yes' },
          'emailVerified: Invalid input: expected boolean, received string',
        ],
        ['an unknown hash', { passwordHash: unknownHashes[5] }, 'passwordHash: Cannot be used: it has an unknown form'],
        [
          'a hash that costs too much',
          { passwordHash: costlyHashes['bcrypt'] },
          'passwordHash: Cannot be used: it costs too much time or memory',
        ],
        [
          'a hash that is too long',
          { passwordHash: `$pbkdf2-sha256$1$${'A'.repeat(250)}$AAAA` },
          'passwordHash: Must have at most 255 characters',
        ],
        [
          'a provider that there is not',
          { identities: [{ provider: 'github', subject: '1' }] },
          'identities.0: The provider github is not configured here: its issuer must be given',
        ],
        [
          'an issuer that there is not',
          { identities: [{ issuer: 'https://id.example.com', subject: '1' }] },
          'identities.0: No provider of this issuer is configured',
        ],
        [
          'an identity of no provider',
          { identities: [{ subject: '1' }] },
          'identities.0: Requires a provider or an issuer',
        ],
        [
          'an identity twice',
          {
            identities: [
              { provider: 'acme', subject: '1' },
              { issuer: provider.url, subject: 1 },
            ],
          },
          'identities.1: Must not be repeated',
        ],
        [
          'a subject that cannot be stored',
          { identities: [{ provider: 'acme', subject: 'ü' }] },
          'identities.0: Issuer and subject must have 1 to 255 printable ASCII characters',
        ],
      ];
      test.each(bad)('with %s is refused on that line, and the others are imported', async (_, line, problem) => {
        const [first, last] = [freshEmail(), freshEmail()];
        const isRaw = typeof line === 'string' || Buffer.isBuffer(line);
        const bytes = isRaw ? Buffer.from(line) : Buffer.from(JSON.stringify({ email: freshEmail(), ...line }));
        const whole = Buffer.concat([
          Buffer.from(`{"email":"${first}"}\n`),
          bytes,
          Buffer.from(`\n{"email":"${last}"}\n`),
        ]);
        const { code, lines, stdout, stderr } = await importOf(stack(), whole);
        expect({ code, lines }).toEqual({
          code: 1,
          lines: [`line 2: refused: ${problem}`, '2 imported, 0 skipped, 1 refused'],
        });
        for (const email of [first, last]) expect(await userWith(stack(), email)).toBeDefined();
        expect(stdout + stderr).not.toMatch(/\$\d|secret/);
      });

      test('that is missing, and wrong arguments, are reported in sentences', async () => {
        expect(await run(stack(), 'import')).toMatchObject({ code: 2, stderr: expect.stringMatching(/^Usage: /) });
        const missing = await run(stack(), 'import', join(folder, 'missing'));
        expect(missing).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/^ENOENT/) });
        const wrong = await run(stack(), 'import', '--overwrite');
        expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/--overwrite[\s\S]*Usage: /) });
      });
    },
    { env },
  );
});

describe('with AVATARS=own', () => {
  onStack(
    'embedded',
    (stack) => {
      const s3 = { S3_ENDPOINT: 'https://s3.test', S3_BUCKET: 'files', S3_ACCESS_KEY: 'k', S3_SECRET_KEY: 's' };
      const storages = [
        ['files of the service', () => stack().appUrl, {}],
        ['S3', () => 'https://s3.test/files', s3],
        ['S3 by another name', () => 'https://files.test', { ...s3, S3_PUBLIC_URL: 'https://files.test' }],
      ] as const;

      test.each(storages)('an external avatar is omitted, and its user imported: %s', async (_, base, more) => {
        const ours = `${base()}/uploads/a.webp`;
        const allowed = [ours, `${ours}?v=2`, ours.replace('://', ':///'), '', undefined];
        const otherHosts = [
          'https://example.com/ada.png',
          'https://example.com/uploads/a.webp',
          `${base()}/uploads/../a.webp`,
          `https://example.com/${base()}/uploads/a.webp`,
        ];
        const records = [...otherHosts, ...allowed].map((avatar) => ({ email: freshEmail(), bio: 'Engines', avatar }));
        const [file, all] = [fileOf(records), { ...envOf(stack()), ...more }];
        const left = 'lines 1 to 4: avatar omitted: AVATARS=own';
        expect((await runWith(all, 'import', file, '--dry-run')).lines).toEqual([
          left,
          '9 would be imported, 0 skipped, 0 refused',
        ]);
        const { code, lines, stderr } = await runWith(all, 'import', file);
        expect({ code, lines, stderr }).toEqual({
          code: 0,
          lines: [left, '9 imported, 0 skipped, 0 refused'],
          stderr: '',
        });
        const stored = await Promise.all(records.map(({ email }) => userWith(stack(), email)));
        expect(stored.map((user) => user?.['avatar'])).toEqual([
          ...otherHosts.map(() => null),
          ...[ours, `${ours}?v=2`, ours, null, null],
        ]);
        expect(stored.every((user) => user?.['bio'] === 'Engines')).toBe(true);
        expect((await runWith(all, 'import', file)).lines).toEqual([
          'lines 1 to 9: skipped: a user already has this address',
          '0 imported, 9 skipped, 0 refused',
        ]);
      });

      test('an uploaded picture of an exported user is restored', async () => {
        const scenario = { stack: stack(), call: callerOf('rest', stack().url) };
        const { email, session } = await loggedIn(scenario);
        const { body } = await sendImage(scenario, session, { bytes: await png(), type: 'avatar' });
        await scenario.call('profile.update', { avatar: body.url }, { session });
        const line = (await run(stack(), 'export')).lines.find((one) => one.includes(email)) ?? '';
        const moved = freshEmail();
        const { lines } = await importOf(stack(), [{ ...JSON.parse(line), email: moved }]);
        expect(lines).toEqual(['1 imported, 0 skipped, 0 refused']);
        expect(await userWith(stack(), moved)).toMatchObject({ avatar: body.url });
      });
    },
    { env: { AVATARS: 'own' } },
  );
});

describe('an import that is stopped', () => {
  onStack('real', (stack) => {
    const records = (count: number) =>
      Array.from({ length: count }, () => ({
        email: freshEmail(),
        emailVerified: true,
        passwordHash: vector.hash,
        createdAt: 1_600_000_000_000,
      }));

    test.each(['SIGKILL', 'SIGINT'] as const)('by %s continues without a duplicate or loss', async (signal) => {
      const people = records(20_000);
      const file = fileOf(people);
      const before = await countOf(stack());
      const child = startImport(stack(), file);
      const ended = once(child, 'close');
      const output = text(child.stdout);
      await until(async () => (await countOf(stack())) > before, { what: 'the first users' });
      child.kill(signal);
      const [code] = await ended;
      const imported = (await countOf(stack())) - before;
      expect(imported).toBeLessThan(people.length);
      expect(imported % 500).toBe(0);
      if (signal === 'SIGINT') {
        expect(code).toBe(130);
        expect(await output).toBe(
          `${imported} imported, 0 skipped, 0 refused\nStopped: run the same command to continue\n`,
        );
      }
      const { lines } = await run(stack(), 'import', file);
      expect(lines).toEqual([
        `lines 1 to ${imported}: skipped: a user already has this address`,
        `${people.length - imported} imported, ${imported} skipped, 0 refused`,
      ]);
      expect(await countOf(stack())).toBe(before + people.length);
      const untold = await stack().database(
        "select id from users where not exists (select 1 from activity where user_id = users.id and kind = 'registered')",
      );
      expect(untold).toEqual([]);
    });

    test('two concurrent imports import each user once', async () => {
      const people = records(3000);
      const before = await countOf(stack());
      const both = await Promise.all([1, 2].map(() => importOf(stack(), people)));
      expect(both.map(({ code, stderr }) => [code, stderr])).toEqual([
        [0, ''],
        [0, ''],
      ]);
      expect(await countOf(stack())).toBe(before + people.length);
      const imported = both.map(({ lines }) => Number(/^(\d+) imported/.exec(lines.at(-1) ?? '')?.[1]));
      expect(imported.reduce((sum, count) => sum + count, 0)).toBe(people.length);
    });
  });
});
