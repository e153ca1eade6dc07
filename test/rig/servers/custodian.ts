import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// A test process may end without running its hooks (SIGKILL, a crashed worker). This shell outlives it: it reads what to
// clean up, and cleans up once its input ends, for whatever reason.
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
  // In its own session: a Ctrl-C at the terminal must not end it together with the processes it cleans up.
  const child = spawn('sh', ['-c', script], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  child.unref();
  // Node treats a pipe as a socket, which would keep this process alive unless unreferenced.
  (child.stdin as unknown as { unref(): void }).unref();
  return child;
}

/** Kills the process group when this process ends, unless it is released before. */
export const watchGroup = (pid: number): void => tell(`watch ${pid}`);

/** The group has ended: its number may be reused. */
export const releaseGroup = (pid: number): void => tell(`release ${pid}`);

function directoryIn(place: string, label: string): string {
  const directory = mkdtempSync(join(place, `account-${label}-`));
  tell(`directory ${directory}`);
  return directory;
}

/** A fresh directory, removed when this process ends. */
export const temporaryDirectory = (label: string): string => directoryIn(tmpdir(), label);

const MEMORY = '/dev/shm';
/** More than the data of all servers of a test run. */
const MEMORY_NEEDED = 6 * 2 ** 30;

const hasMemory = (): boolean => {
  if (process.env.TMPDIR !== undefined || !existsSync(MEMORY)) return false;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize > MEMORY_NEEDED;
};

/**
 * A temporaryDirectory for the data of a server: in memory if there is room, because each commit waits for an fsync, and
 * a busy disk takes long for it. TMPDIR=/tmp keeps it on the disk.
 */
export const dataDirectory = (label: string): string => directoryIn(hasMemory() ? MEMORY : tmpdir(), label);
