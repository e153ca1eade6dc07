import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import clientPackageJson from '../../client/package.json' with { type: 'json' };
import packageJson from '../../package.json' with { type: 'json' };

interface Locked {
  version?: string;
  integrity?: string;
  os?: string | string[];
  cpu?: string | string[];
  bin?: Record<string, string>;
  hasInstallScript?: boolean;
  dev?: boolean;
  license?: string;
  link?: boolean;
}

const lock = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8')) as {
  packages: Record<string, Locked>;
};
const installed = Object.entries(lock.packages).filter(([path, { link }]) => path.includes('node_modules/') && !link);

test('the lock file pins every package by hash', () => {
  expect(installed.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))).toEqual([]);
});

test('no package runs a script at installation', () => {
  expect(installed.filter(([, { hasInstallScript }]) => hasInstallScript)).toEqual([]);
});

test('overrides name versions: npm 9, which Debian 12 has, refuses a lock file with any other', () => {
  const values = JSON.stringify(packageJson.overrides).matchAll(/:"([^"]*)"/g);
  expect(
    [...values].map(([, value]) => value).filter((value) => !/^(\$?[\w-]+|\d+\.\d+\.\d+)$/.test(value ?? '')),
  ).toEqual([]);
});

test('SECURITY.md lists the licences of all production packages', () => {
  const listed = readFileSync(new URL('../../SECURITY.md', import.meta.url), 'utf8').match(/^Licences: (.*)$/m)?.[1];
  const licences = installed.flatMap(([path, { dev, license }]) => (dev ? [] : [license ?? `none: ${path}`]));
  const single = licences.flatMap((licence) => licence.replace(/[()]/g, '').split(/ AND | OR /));
  expect([...new Set(single)].sort().join(', ')).toBe(listed);
});

test('every script of package.json runs in cmd.exe too: Node, npm and programs of packages, joined by &&', () => {
  const programs = new Set(['node', 'npm', ...installed.flatMap(([, { bin = {} }]) => Object.keys(bin))]);
  const scripts = [packageJson, clientPackageJson].flatMap(({ scripts }) => Object.entries<string>(scripts));
  const misplaced = scripts.filter(([, script]) =>
    script.split(' && ').some((command) => {
      const [program = '', ...words] = command.split(' ');
      return !programs.has(program) || words.some((word) => /[^\w@:./=-]/.test(word));
    }),
  );
  expect(misplaced).toEqual([]);
});

describe('the runtime', () => {
  test('is a pinned package for each platform', () => {
    const platforms = Object.entries(packageJson.optionalDependencies).map(([name, version]) => {
      const locked = lock.packages[`node_modules/${name}`];
      expect(locked).toMatchObject({ version, bin: { node: expect.any(String) } });
      return [locked?.os, locked?.cpu].flat().join(' ');
    });
    expect(platforms.sort()).toEqual(['darwin arm64', 'darwin x64', 'linux arm64', 'linux x64', 'win32 x64']);
  });

  test('is the one that runs these scripts', () => {
    const versions: string[] = Object.values(packageJson.optionalDependencies);
    expect(versions).toContain(process.versions.node);
    expect(process.execPath).toMatch(/\/node_modules\/node-[^/]+\/bin\/node$/);
  });
});

test('mikro-orm and its packages have one version', () => {
  const parts = Object.entries({ ...packageJson.dependencies, ...packageJson.devDependencies })
    .filter(([name]) => name === 'mikro-orm' || name.startsWith('@mikro-orm/'))
    .map(([name, version]) => [name, version]);
  expect(parts.map(([name]) => name)).toContain('mikro-orm');
  expect(new Set(parts.map(([, version]) => version))).toEqual(new Set(['7.2.1']));
});
