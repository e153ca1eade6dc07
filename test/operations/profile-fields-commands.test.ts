import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { onBothStacks, PASSWORD } from '../contract/rig/scenario.ts';
import { runToItsEnd } from '../rig/process/command.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';

/** What commands do with the fields of PROFILE_FIELDS. */

const folder = temporaryDirectory('fields-commands');
const write = (name: string, content: string): string => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};
const field = { type: 'text', labels: { en: 'A field' }, read: 'public', write: 'owner' };
const username = { ...field, name: 'username', unique: true };
const score = { ...field, name: 'score', type: 'number', read: 'services', write: 'services' };
const both = write('both.json', JSON.stringify([username, score]));
const withoutUsername = write('score.json', JSON.stringify([score]));

let files = 0;

onBothStacks(
  (stack) => {
    const env = () => stack().services[0]?.env ?? {};
    const importOf = async (...records: object[]) => {
      const file = write(`users-${files++}.ndjson`, records.map((record) => JSON.stringify(record)).join('\n'));
      const { code, stdout } = await runToItsEnd('users-import', env(), [file]);
      return { code, lines: stdout.trim().split('\n') };
    };
    const storedFields = async (email: string) => {
      const [row] = await stack().database<{ fields: string | null }>('select fields from users where email = ?', [
        email,
      ]);
      return row?.fields == null ? row?.fields : JSON.parse(row.fields);
    };
    const name = () => `u${process.pid}x${files++}`;

    test('an import validates fields, keeps unique values apart, and an export has what an import reads', async () => {
      const [ada, bob, cleo, eve] = [freshEmail(), freshEmail(), freshEmail(), freshEmail()];
      const [first, second] = [name(), name()];
      const record = (email: string, fields: object) => ({ email, emailVerified: true, fields });
      const outcome = await importOf(
        record(ada, { username: first, score: 3 }),
        record(bob, { username: first.toUpperCase() }),
        record(bob, { username: second, shoe: 1 }),
        record(bob, []),
        record(cleo, { score: 'three', [' \n']: 1 }),
      );
      expect(outcome).toEqual({
        code: 1,
        lines: [
          'line 2: refused: line 1 has the value of a unique field',
          'line 3: fields.shoe omitted: There is no such field',
          'line 4: refused: fields: Must be an object',
          'line 5: fields.score omitted: Must be a number; fields.(a name of other characters) omitted: There is no such field',
          '3 imported, 0 skipped, 2 refused',
        ],
      });
      expect(await storedFields(ada)).toEqual({ username: first, score: 3 });
      expect(await storedFields(bob)).toEqual({ username: second });
      expect(await storedFields(cleo)).toBeNull();
      expect((await importOf(record(eve, { username: second }))).lines[0]).toBe(
        'line 1: refused: another user has the value of a unique field',
      );
      const taken = await callerOf('rest', stack().url)('auth.register', {
        ...{ email: eve, password: PASSWORD, name: 'Eve' },
        fields: { username: second },
      });
      expect(taken).toMatchObject({ status: 409, code: 'FIELD_TAKEN' });
      const { stdout } = await runToItsEnd('users-export', env());
      const exported = stdout.split('\n').find((line) => line.includes(ada)) ?? '';
      expect(JSON.parse(exported)).toMatchObject({ fields: { username: first, score: 3 } });
      await stack().database('delete from users where email = ?', [ada]);
      expect(await importOf(JSON.parse(exported))).toMatchObject({ code: 0 });
      expect(await storedFields(ada)).toEqual({ username: first, score: 3 });
    });

    test('an export leaves out values that no longer fit their field, and an import reads fields of null', async () => {
      const [ada, bob] = [freshEmail(), freshEmail()];
      const value = name();
      await importOf({ email: ada, fields: { username: value, score: 3 } });
      const stale = JSON.stringify({ username: value, score: 'three', shoe: 1 });
      await stack().database('update users set fields = ? where email = ?', [stale, ada]);
      const { stdout } = await runToItsEnd('users-export', env());
      const exported = JSON.parse(stdout.split('\n').find((line) => line.includes(ada)) ?? '');
      expect(exported.fields).toEqual({ username: value });
      expect(await importOf({ email: bob, fields: null })).toEqual({
        code: 0,
        lines: ['1 imported, 0 skipped, 0 refused'],
      });
      expect(await storedFields(bob)).toBeNull();
    });

    test('a field that is not configured keeps its values until drop-field removes them', async () => {
      const [ada, bob] = [freshEmail(), freshEmail()];
      const value = name();
      await importOf(
        { email: ada, fields: { username: value, score: 3 } },
        { email: bob, fields: { username: name() } },
      );
      const drop = (profileFields: string, field: string) =>
        runToItsEnd('user', { ...env(), PROFILE_FIELDS: profileFields }, ['drop-field', field]);
      const refused = await drop(both, 'username');
      expect(refused).toMatchObject({ code: 2, stdout: '' });
      expect(refused.stderr).toContain('username is in PROFILE_FIELDS');
      expect(await storedFields(ada)).toEqual({ username: value, score: 3 });
      expect(await drop(withoutUsername, '__proto__')).toMatchObject({
        code: 0,
        stdout: '0 values of __proto__ were removed.\n',
      });
      const done = await drop(withoutUsername, 'username');
      expect(done.stdout).toMatch(/^\d+ values of username were removed\.\n$/);
      expect(await storedFields(ada)).toEqual({ score: 3 });
      expect(await storedFields(bob)).toBeNull();
      expect(await stack().database("select user_id from unique_values where field = 'username'")).toEqual([]);
      expect((await drop(withoutUsername, 'username')).stdout).toBe('0 values of username were removed.\n');
      expect((await importOf({ email: freshEmail(), fields: { username: value } })).code).toBe(0);
    });
  },
  { env: { PROFILE_FIELDS: both } },
);

test('a wrong file stops a command too, with every problem', async () => {
  const wrong = write(
    'wrong.json',
    JSON.stringify([
      { ...username, read: 'all' },
      { ...score, unique: true },
    ]),
  );
  const { code, stderr } = await runToItsEnd('user', { PROFILE_FIELDS: wrong, DATA_DIR: folder }, ['find']);
  expect(code).toBe(2);
  expect(stderr).toMatch(/PROFILE_FIELDS username\.read .*\n +PROFILE_FIELDS score\.unique applies to text only/);
});
