import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { passwordRules } from 'account-client';
import { expect, test } from 'vitest';
import type { z } from 'zod';
import * as fields from '../../../routers/schemas/fields.ts';
import { errorCodes, ServiceError } from '../../../server/errors.ts';
import { readTexts } from '../../../server/texts/index.ts';

const root = resolve(import.meta.dirname, '../../..');
const { en: texts } = readTexts(undefined);

/** Logged-in users enter only a password; the log-in page has its own text with the service's message. */
const saidOtherwise = { INVALID_CREDENTIALS: 'The password is wrong' };

test('every error code has a text; the English one is the service’s message', () => {
  const sentences = errorCodes.map((code) => [`common.codes.${code}`, new ServiceError(code).message]);
  const otherTexts = Object.entries(saidOtherwise).map(([code, sentence]) => [`common.codes.${code}`, sentence]);
  const codes = Object.entries(texts).filter(([key]) => key.startsWith('common.codes.'));
  expect(Object.fromEntries(codes)).toEqual(Object.fromEntries([...sentences, ...otherTexts]));
});

test('every password rule has a text; the English one is its label', () => {
  const labels = passwordRules.map(({ rules: [name], label }) => [`common.passwordRules.${name}`, label]);
  const rules = Object.entries(texts).filter(([key]) => key.startsWith('common.passwordRules.'));
  expect(Object.fromEntries(rules)).toEqual(Object.fromEntries(labels));
});

const broken: [rule: string, schema: z.ZodType, value: string][] = [
  ['too_long', fields.profile.bio, 'x'.repeat(501)],
  ['too_short', fields.name, 'x'],
  ['too_short', fields.newPassword, 'Aa1-'],
  ['invalid_characters', fields.name, 'A\nB'],
  ['invisible', fields.passkeyName, '\u200b'],
  ['invalid_url', fields.profile.website, 'example.com'],
  ['invalid_email', fields.email, 'nobody'],
  ['uppercase', fields.newPassword, 'analytical-1'],
  ['lowercase', fields.newPassword, 'ANALYTICAL-1'],
  ['digit', fields.newPassword, 'Analytical-'],
  ['symbol', fields.newPassword, 'Analytical1'],
  ['invalid_code', fields.code, '12345'],
];

test.each(broken)('the rule %s has a text; the English one is the service’s message', (rule, schema, value) => {
  const sentences = schema.safeParse(value).error?.issues.map(({ message }) => message.replace(/\d+/, '{limit}'));
  expect(sentences).toContain(texts[`common.rules.${rule}`]);
});

/** Zod's names for checks without a rule of ours. */
const ofZod = ['too_big', 'too_small'];

test('every rule with a text exists in the service', () => {
  const files = globSync(['server/**/*.ts', 'routers/**/*.ts'], { cwd: root }).map((path) =>
    readFileSync(join(root, path), 'utf8'),
  );
  const rules = Object.keys(texts).flatMap((key) => /^common\.rules\.(.*)/.exec(key)?.[1] ?? []);
  const unknown = rules.filter((rule) => !files.some((source) => source.includes(`'${rule}'`)));
  expect(unknown.sort()).toEqual(ofZod);
});
