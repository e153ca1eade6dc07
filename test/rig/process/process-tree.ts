import { readdirSync, readFileSync } from 'node:fs';

/** The running direct children of a process. Linux only. */
export function childrenOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    childrenBy(pid, thread).split(' ').filter(Boolean).map(Number),
  );
}

/** Those of a thread; none if it has ended since it was listed: another thread has them then. */
function childrenBy(pid: number, thread: string): string {
  try {
    return readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return '';
    throw error;
  }
}

/** The nice values of a process's threads, by name. Linux only. */
export function priorities(pid: number): Map<string, Set<number>> {
  const found = new Map<string, Set<number>>();
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8');
    // proc_pid_stat(5): the nice value is field 19; the name before field 3 may hold anything.
    const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
    const nice = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]);
    found.set(name, (found.get(name) ?? new Set()).add(nice));
  }
  return found;
}
