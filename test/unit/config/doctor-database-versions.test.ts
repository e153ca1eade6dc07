import { expect, test } from 'vitest';
import { versionFinding } from '../../../server/cli/doctor/database-server.ts';

test.each([
  ['9.7.4', 'ok'],
  ['8.0.11', 'ok'],
  ['5.7.44', 'problem'],
  ['10.6.0-MariaDB', 'ok'],
  ['10.11.14-MariaDB-0+deb12u2', 'ok'],
  ['10.5.29-MariaDB', 'problem'],
  ['8.0.11-TiDB-v8.5.0', 'problem'],
])('a server of version %s: %s', (version, level) => {
  expect(versionFinding(version).level).toBe(level);
});
