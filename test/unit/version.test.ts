import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commitOf } from '../../server/version.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { requireBinary } from '../rig/servers/debian.ts';

const directory = temporaryDirectory('version');
const at = (name: string) => join(directory, name);
const binary = await requireBinary({ names: ['git'], debianPackage: 'git' });
const git = (name: string, ...args: string[]) =>
  execFileSync(binary, ['-c', 'user.name=rig', '-c', 'user.email=rig@example.com', ...args], {
    cwd: at(name),
    encoding: 'utf8',
    stdio: 'pipe',
  }).trim();

mkdirSync(at('checkout'));
git('checkout', 'init', '--initial-branch=main');
git('checkout', 'commit', '--allow-empty', '--message=first');
git('checkout', 'tag', '--annotate', '--message=release', 'v1.2.3');
const commit = git('checkout', 'rev-parse', 'HEAD');

/** Ways in which a directory becomes a checkout of that commit. */
const forms: Record<string, () => unknown> = {
  checkout: () => undefined,
  packed: () => {
    git('checkout', 'clone', '.', at('packed'));
    git('packed', 'pack-refs', '--all');
  },
  tag: () => git('checkout', 'clone', '--branch=v1.2.3', '.', at('tag')),
  worktree: () => git('checkout', 'worktree', 'add', '-b', 'feature/other', at('worktree')),
};
test.each(Object.entries(forms))('the commit of a %s', (name, make) => {
  make();
  expect(commitOf(at(name))).toBe(commit);
});

test('an image has the commit of its build, other copies none', () => {
  for (const [name, built] of [
    ['image', 'a'.repeat(40)],
    ['unnamed', ''],
  ] as const) {
    mkdirSync(at(name));
    writeFileSync(join(at(name), '.commit'), built);
    expect(commitOf(at(name))).toBe(built || undefined);
  }
  expect(commitOf(at('nowhere'))).toBeUndefined();
});
