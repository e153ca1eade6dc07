import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { releaseGroup, watchGroup } from '../servers/custodian.ts';
import { inTime, until } from '../until.ts';

export interface ProcessGroup {
  /** The id of the first process, and so of the group. */
  readonly pid: number;
  /** Resolves to the exit code once the first process has exited and its output is read; null after a signal. */
  readonly exited: Promise<number | null>;
  isRunning(): boolean;
  /** Everything written to stdout and stderr so far. */
  output(): string;
  /** To every process of the group. */
  signal(name: NodeJS.Signals): void;
}

export interface Command {
  file: string;
  args: string[];
  env: Record<string, string>;
  cwd?: string;
  /** A file for its stdout, instead of `output`. */
  stdout?: string;
}

/** Starts a command as the leader of a process group that does not outlive this process. */
export function spawnGroup({ file, args, env, cwd, stdout }: Command): ProcessGroup {
  const target = stdout === undefined ? 'pipe' : openSync(stdout, 'w');
  const child = spawn(file, args, { env, cwd, detached: true, stdio: ['ignore', target, 'pipe'] });
  if (target !== 'pipe') closeSync(target);
  const { pid } = child;
  let output = '';
  let isRunning = pid !== undefined;
  const { promise: exited, resolve } = Promise.withResolvers<number | null>();
  const collect = (text: string) => {
    output += text;
  };
  child.stdout?.setEncoding('utf8').on('data', collect);
  child.stderr?.setEncoding('utf8').on('data', collect);
  child.once('error', (error) => collect(`${error.message}\n`));
  child.once('close', (code) => {
    isRunning = false;
    if (pid !== undefined) releaseGroup(pid);
    resolve(pid === undefined ? null : code);
  });
  if (pid !== undefined) watchGroup(pid);

  return {
    pid: pid ?? 0,
    exited,
    isRunning: () => isRunning,
    output: () => output,
    signal: (name) => {
      if (isRunning && pid !== undefined) signalIfThere(-pid, name);
    },
  };
}

/** Sends a signal; a process that has just ended is no error. */
export function signalIfThere(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/**
 * Waits until `ready` holds. If the process ends first or time runs out, its group is killed, and the Error contains its
 * output.
 */
export async function whenReady(
  group: ProcessGroup,
  ready: () => Promise<boolean>,
  { what, within }: { what: string; within: number },
): Promise<void> {
  const failed = group.exited.then((code) => {
    throw new Error(`${what} ended with exit code ${code}`);
  });
  try {
    // Stops polling once the process has exited.
    await Promise.race([until(async () => !group.isRunning() || (await ready()), { within, what }), failed]);
    if (!group.isRunning()) await failed;
  } catch (cause) {
    group.signal('SIGKILL');
    await group.exited;
    throw new Error(`${(cause as Error).message}\n${group.output()}`, { cause });
  }
}

/** Waits for the exit of a process that was told to end. If time runs out, kills its group and rejects. */
export async function whenGone(
  group: ProcessGroup,
  { what, within }: { what: string; within: number },
): Promise<number | null> {
  try {
    return await inTime(group.exited, { within, what });
  } catch (cause) {
    group.signal('SIGKILL');
    await group.exited;
    throw new Error(`${(cause as Error).message}\n${group.output()}`, { cause });
  }
}
