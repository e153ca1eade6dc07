import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { parseConfig, variableNames } from '../../server/config/index.ts';

/** What of docs/deploy can be judged without a system to put it on; test/deploy.test.ts starts the proxies. */
const textOf = (file: string) => readFileSync(new URL(`../../docs/deploy/${file}`, import.meta.url), 'utf8');

test('the environment is a configuration for production once its placeholders are replaced', () => {
  const env = parseEnv(textOf('accounts.env'));
  expect(Object.keys(env).filter((name) => !variableNames.includes(name))).toEqual([]);
  const config = parseConfig({ ...env, APP_SECRET: randomBytes(32).toString('base64'), S3_BUCKET: 'files' });
  expect(config).toMatchObject({ production: true, trustedProxies: 1, host: '127.0.0.1', warnings: [] });
});

test('the unit sets what `npm start` sets, and starts Node itself', () => {
  const unit = textOf('accounts@.service');
  const ofStart = packageJson.scripts.start.match(/\bMALLOC_\S+=\S+/g) ?? [];
  expect(ofStart).not.toEqual([]);
  for (const setting of [...ofStart, 'NODE_COMPILE_CACHE=']) expect(unit).toContain(setting);
  expect(unit).toMatch(/^ExecStart=\S+\/node_modules\/\.bin\/node server\/main\.ts$/m);
});
