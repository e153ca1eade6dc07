import { execFile } from 'node:child_process';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../servers/custodian.ts';

const root = join(import.meta.dirname, '../../..');
const run = promisify(execFile);
const git = async (...args: string[]) => (await run('git', args, { cwd: root, maxBuffer: 1e8 })).stdout;

export interface Release {
  /** v1.2.3, or a commit. */
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

/** The last commit before HEAD that set the version. Tags and subjects do not tell: a clone may lack them, and landing changes them. */
async function newest(): Promise<{ commit: string; name: string }> {
  if ((await git('rev-parse', '--is-shallow-repository')).trim() === 'true')
    throw new Error('no release is known here: the clone is shallow');
  const set = await git('log', '-1', '--format=%H', '-G', '^  "version": ', 'HEAD~1', '--', 'package.json');
  const commit = set.trim() || 'HEAD';
  const { version } = JSON.parse(await git('show', `${commit}:package.json`)) as { version: string };
  return { commit, name: `v${version}` };
}
