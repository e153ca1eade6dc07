import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { expect, test } from 'vitest';
import { parseConfig, variableNames } from '../../server/config/index.ts';

/** Static checks of docs/deploy; test/operations/deploy.test.ts starts the proxies. */
const textOf = (file: string) => readFileSync(new URL(`../../docs/deploy/${file}`, import.meta.url), 'utf8');

test('the environment file is a production configuration once its placeholders are replaced', () => {
  const env = parseEnv(textOf('accounts.env'));
  expect(Object.keys(env).filter((name) => !variableNames.includes(name))).toEqual([]);
  const config = parseConfig({ ...env, APP_SECRET: randomBytes(32).toString('base64'), S3_BUCKET: 'files' });
  expect(config).toMatchObject({ production: true, trustedProxies: 1, host: '127.0.0.1', warnings: [] });
});

test('the unit has the settings of the image, and starts Node directly', () => {
  const unit = textOf('accounts@.service');
  const dockerfile = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8');
  const ofImage = dockerfile.match(/\bMALLOC_\S+=\d+/g) ?? [];
  expect(ofImage).not.toEqual([]);
  for (const setting of [...ofImage, 'NODE_COMPILE_CACHE=']) expect(unit).toContain(setting);
  expect(unit).toMatch(/^ExecStart=\S+\/node_modules\/\.bin\/node (?:--\S+ )*server\/main\.ts$/m);
});
