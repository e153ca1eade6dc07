import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const root = join(import.meta.dirname, '..');

/** The release of this code, or the last one before it. */
export const release: string = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version;

/**
 * The commit of this code: from the image build (`.commit`) or the checkout, else undefined. Read from git's own files
 * (gitrepository-layout(5)): a server may lack git.
 */
export function commitOf(directory: string): string | undefined {
  const built = textOf(join(directory, '.commit'));
  if (built) return built;
  // In a worktree this is a file that names the directory.
  const [, elsewhere] = /^gitdir: (.+)$/.exec(textOf(join(directory, '.git')) ?? '') ?? [];
  const git = resolve(directory, elsewhere ?? '.git');
  const head = textOf(join(git, 'HEAD')) ?? '';
  const [, ref] = /^ref: (.+)$/.exec(head) ?? [];
  const commit = ref === undefined ? head : commitOfRef(resolve(git, textOf(join(git, 'commondir')) ?? '.'), ref);
  return /^[\da-f]{40,64}$/.test(commit ?? '') ? commit : undefined;
}

const commitOfRef = (git: string, ref: string): string | undefined =>
  textOf(join(git, ref)) ??
  textOf(join(git, 'packed-refs'))
    ?.split('\n')
    .find((line) => line.endsWith(` ${ref}`))
    ?.split(' ')[0];

/** The text without its final line break; undefined if there is no such file. */
function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trimEnd();
  } catch {
    return undefined;
  }
}

const commit = commitOf(root);

/** The version: the release and, if known, the commit, as in `0.2.0+g1a2b3c4d`. */
export const version = commit === undefined ? release : `${release}+g${commit.slice(0, 8)}`;
