import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseConfig } from '../../../server/config/index.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { problemsOf } from './config-problems.ts';

const file = join(temporaryDirectory('profile-fields-config'), 'fields.json');
const text = { name: 'nickname', type: 'text', labels: { en: 'Nickname' }, read: 'public', write: 'owner' };
const number = { ...text, name: 'height', type: 'number' };
const choice = { ...text, name: 'color', type: 'choice', choices: ['red'] };

const write = (content: unknown) =>
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
const problems = (content: unknown) => {
  write(content);
  return problemsOf({ PROFILE_FIELDS: file })
    .split('\n')
    .slice(1)
    .map((line) => line.trim());
};

test('the fields of a file, with their defaults', () => {
  write([text, { ...number, min: -1.5, max: 3, required: true }]);
  expect(parseConfig({ PROFILE_FIELDS: file }).profileFields).toEqual([
    { ...text, maxLength: 200, required: false, unique: false },
    { ...number, min: -1.5, max: 3, required: true, unique: false },
  ]);
  expect(parseConfig({}).profileFields).toEqual([]);
});

test.each<[string, unknown, string]>([
  ['JSON', '[', 'cannot be read'],
  ['a list', {}, 'must have an array of at most 20 fields'],
  [
    'at most 20 fields',
    Array.from({ length: 21 }, (_, i) => ({ ...text, name: `f${i}` })),
    'must have an array of at most 20',
  ],
  ['objects', [7], '[0] '],
  ['a name', [{ ...text, name: undefined }], '[0].name '],
  ['a name of letters', [{ ...text, name: 'Nick name' }], 'Nick name.name must begin with'],
  ['a name that JavaScript does not use', [{ ...text, name: 'constructor' }], 'constructor.name is a name that'],
  ['different names', [text, text], 'nickname.name is there twice'],
  ['a known type', [{ ...text, type: 'email' }], 'nickname.type '],
  ['known properties', [{ ...text, lenght: 3 }], 'nickname Unrecognized key: "lenght"'],
  ['an English label', [{ ...text, labels: { de: 'Name' } }], 'nickname.labels.en '],
  ['labels in known languages', [{ ...text, labels: { en: 'Name', xx: 'Name' } }], 'nickname.labels Unrecognized key'],
  ['a reader', [{ ...text, read: 'administrators' }], 'nickname.read '],
  ['a writer', [{ ...text, write: 'public' }], 'nickname.write '],
  ['a reader who includes the writer', [{ ...text, read: 'services' }], 'nickname.read must be owner or public'],
  [
    'a required field that users write',
    [{ ...text, write: 'services', required: true }],
    'nickname.required needs write',
  ],
  ['unique texts only', [{ ...number, unique: true }], 'height.unique applies to text only'],
  ['bounds of the type', [{ ...text, min: 3 }], 'nickname.min does not apply to text'],
  ['a length within the limit', [{ ...text, maxLength: 1001 }], 'nickname.maxLength must be at most 1000'],
  ['a whole length', [{ ...text, maxLength: 0 }], 'nickname.maxLength '],
  ['a range', [{ ...number, min: 2, max: 1 }], 'height.min must not be above max'],
  ['choices', [{ ...choice, choices: undefined }], 'color.choices is missing'],
  ['different choices', [{ ...choice, choices: ['a', 'a'] }], 'color.choices must not be repeated'],
])('a file needs %s', (_, content, message) => {
  expect(problems(content)).toEqual([
    expect.stringContaining(`PROFILE_FIELDS ${message.startsWith('cannot') ? '' : message}`),
  ]);
  expect(problems(content)[0]).toContain(message);
});

test('every problem is told at once, with those of other variables', () => {
  write([
    { ...text, read: 'all', min: 1 },
    { ...number, min: 2, max: 1 },
  ]);
  const told = problemsOf({ PROFILE_FIELDS: file, PORT: 'x' });
  for (const name of ['nickname.read', 'nickname.min', 'height.min', 'PORT']) expect(told).toContain(name);
});

test('a file that is not there', () => {
  expect(problemsOf({ PROFILE_FIELDS: '/nowhere.json' })).toMatch(
    /PROFILE_FIELDS \/nowhere.json cannot be read: ENOENT/,
  );
});
