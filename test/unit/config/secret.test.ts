import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { applicationSecrets } from '../../../server/process/secret.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

test('a secret is created once and kept, readable by its owner only', () => {
  const dataDir = temporaryDirectory('secret');
  const [secret] = applicationSecrets({ appSecrets: undefined, dataDir });
  expect(Buffer.from(secret, 'base64url')).toHaveLength(32);
  expect(applicationSecrets({ appSecrets: undefined, dataDir })).toEqual([secret]);
  expect(readFileSync(join(dataDir, 'secret'), 'utf8')).toBe(secret);
  expect(readdirSync(dataDir)).toEqual(['secret']);
  expect(statSync(join(dataDir, 'secret')).mode & 0o777).toBe(0o600);
});

test.each(['', 'half of a secr'])('a file with %j is not a secret', (content) => {
  const dataDir = temporaryDirectory('secret');
  writeFileSync(join(dataDir, 'secret'), content);
  expect(() => applicationSecrets({ appSecrets: undefined, dataDir })).toThrow(/restore it, or delete it/);
});
