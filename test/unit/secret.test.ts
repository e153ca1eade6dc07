import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { applicationSecret } from '../../server/start/secret.ts';
import { temporaryDirectory } from '../rig/custodian.ts';

test('a secret is made once and kept, for its owner alone', () => {
  const dataDir = temporaryDirectory('secret');
  const secret = applicationSecret({ appSecret: undefined, dataDir });
  expect(Buffer.from(secret, 'base64url')).toHaveLength(32);
  expect(applicationSecret({ appSecret: undefined, dataDir })).toBe(secret);
  expect(readFileSync(join(dataDir, 'secret'), 'utf8')).toBe(secret);
  expect(readdirSync(dataDir)).toEqual(['secret']);
});

test.each(['', 'half of a secr'])('a file that holds %j is no secret', (content) => {
  const dataDir = temporaryDirectory('secret');
  writeFileSync(join(dataDir, 'secret'), content);
  expect(() => applicationSecret({ appSecret: undefined, dataDir })).toThrow(/restore it, or delete it/);
});
