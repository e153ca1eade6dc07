import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { type Command, spawnGroup, whenGone, whenReady } from './process-group.ts';

/** A server that belongs to the tests alone: they may freeze it, kill it and bring it back. */
export interface PrivateServer {
  readonly url: string;
  readonly port: number;
  /** Of the running process: another one after a restart. */
  readonly pid: number;
  /** Freezes the process: connections are still accepted by the kernel, nothing is answered. */
  pause(): void;
  resume(): void;
  /** Ends the process, the data stay: connections are refused until up(). `kill` ends it with SIGKILL. */
  down(options?: { kill?: boolean }): Promise<void>;
  /** Starts it again, on the same port and data; resolves once it answers. */
  up(): Promise<void>;
  /** down(), then up(). */
  restart(options?: { kill?: boolean }): Promise<void>;
  /** Ends the process and deletes its data. */
  stop(): Promise<void>;
}

export interface ServerDescription {
  name: string;
  url: string;
  port: number;
  directory: string;
  command: Command;
  /** Whether it answers a client of its protocol; may throw while it does not. */
  answers(): Promise<boolean>;
}

/** Starts a server and resolves once it answers. */
export async function startPrivateServer(server: ServerDescription): Promise<PrivateServer> {
  const { name, url, port, directory } = server;
  const launch = async () => {
    const group = spawnGroup(server.command);
    await whenReady(group, server.answers, { what: `${name} on port ${port}`, within: 30_000 });
    return group;
  };
  let group = await launch();

  const down = async ({ kill = false } = {}) => {
    group.signal(kill ? 'SIGKILL' : 'SIGTERM');
    // A frozen process heeds SIGTERM only once it runs again.
    group.signal('SIGCONT');
    await whenGone(group, { what: `the end of ${name}`, within: 20_000 });
  };
  const up = async () => {
    group = await launch();
  };
  return {
    url,
    port,
    get pid() {
      return group.pid;
    },
    pause() {
      group.signal('SIGSTOP');
      waitUntilStopped(group.pid);
    },
    resume: () => group.signal('SIGCONT'),
    down,
    up,
    async restart(options) {
      await down(options);
      await up();
    },
    async stop() {
      await down();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** A server that was given by its address: usable, but not ours to stop or to freeze. */
export function foreignServer(url: string, variable: string): PrivateServer {
  const refuse = (): never => {
    throw new Error(
      `${variable} names a server that the tests did not start: unset it for tests that stop or freeze one`,
    );
  };
  return {
    url,
    port: Number(new URL(url).port),
    get pid() {
      return refuse();
    },
    pause: refuse,
    resume: refuse,
    down: refuse,
    up: refuse,
    restart: refuse,
    stop: async () => undefined,
  };
}

/** The kernel stops a process some time after it was told to; on a busy machine its threads may answer meanwhile. */
function waitUntilStopped(pid: number): void {
  const isStopped = (thread: string) => /\) [Tt] /.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8'));
  const end = performance.now() + 5000;
  while (existsSync('/proc/self/task') && !readdirSync(`/proc/${pid}/task`).every(isStopped)) {
    if (performance.now() > end) throw new Error(`process ${pid} does not stop`);
  }
}
