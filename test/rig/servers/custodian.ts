import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// A test process may end without running any hook of its own (SIGKILL, a crashed worker). This shell outlives it: it reads
// what there is to clean up, and cleans it up once its input ends, in whatever way that came about.
const script = `
groups=
while read -r verb what; do
  case $verb in
    watch) groups="$groups $what" ;;
    release) left=; for group in $groups; do [ "$group" = "$what" ] || left="$left $group"; done; groups=$left ;;
    directory) set -- "$@" "$what" ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
[ $# -eq 0 ] || rm -rf -- "$@" || rm -rf -- "$@"
`;

let shell: ChildProcess | undefined;

function tell(line: string): void {
  shell ??= startShell();
  shell.stdin?.write(`${line}\n`);
}

function startShell(): ChildProcess {
  // In a session of its own: a Ctrl-C at the terminal must not end it together with those it cleans up after.
  const child = spawn('sh', ['-c', script], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  child.unref();
  // A pipe is a socket to Node; left referenced it would keep this process alive for ever.
  (child.stdin as unknown as { unref(): void }).unref();
  return child;
}

/** Kills the process group when this process ends, unless it is released before. */
export const watchGroup = (pid: number): void => tell(`watch ${pid}`);

/** The group is gone: its number may soon be another's. */
export const releaseGroup = (pid: number): void => tell(`release ${pid}`);

/** A fresh directory, removed when this process ends. */
export function temporaryDirectory(label: string): string {
  const directory = mkdtempSync(join(tmpdir(), `account-${label}-`));
  tell(`directory ${directory}`);
  return directory;
}
