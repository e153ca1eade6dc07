import { execFile } from 'node:child_process';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../servers/custodian.ts';

const root = join(import.meta.dirname, '../../..');
const run = promisify(execFile);
const git = async (...args: string[]) => (await run('git', args, { cwd: root, maxBuffer: 1e8 })).stdout;

export interface Release {
  /** v1.2.3, or the commit. */
  name: string;
  /** Its files with its production packages. */
  tree: string;
}

/** The newest release before HEAD, or HEAD if it is the first one. The directory is removed when this process ends. */
export async function lastRelease(): Promise<Release> {
  return treeOf(await newest());
}

/** The state of a commit, in the same way. */
export const releaseAt = (commit: string): Promise<Release> => treeOf({ commit, name: commit });

async function treeOf({ commit, name }: { commit: string; name: string }): Promise<Release> {
  const tree = temporaryDirectory('release');
  await run('sh', ['-c', 'git archive "$0" | tar -x -C "$1"', commit, tree], { cwd: root });
  const changed = await git('diff', '--name-only', commit, '--', 'package-lock.json');
  if (changed === '') await symlink(join(root, 'node_modules'), join(tree, 'node_modules'));
  else await run('npm', ['ci', '--omit=dev', '--ignore-scripts', '--prefer-offline', '--no-audit'], { cwd: tree });
  return { name, tree };
}

/** A clone may lack tags: a release is a commit of `npm version`, or else a tagged one. */
async function newest(): Promise<{ commit: string; name: string }> {
  const isRelease = (text = '') => /^v\d+\.\d+\.\d+$/.test(text);
  const [head = [], ...before] = (await git('log', '--format=%H %s')).split('\n').map((line) => line.split(/ (.*)/));
  const tags = (await git('tag', '--merged', 'HEAD~1', '--sort=-v:refname', '--format=%(objectname) %(refname:short)'))
    .split('\n')
    .map((line) => line.split(' '));
  const [commit, name] = [...before, ...tags, head].find(([, name]) => isRelease(name)) ?? [];
  if (commit && name) return { commit, name };
  throw new Error(
    'no release is known here: no commit or tag vX.Y.Z, as `npm version` makes it; is the clone shallow?',
  );
}
