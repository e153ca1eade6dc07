import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { type Command, spawnGroup, whenGone, whenReady } from '../process/process-group.ts';
import { START_MS } from '../until.ts';

/** A server of the tests alone: they may freeze, kill and restart it. */
export interface PrivateServer {
  readonly url: string;
  readonly port: number;
  /** The id of the running process; changes at a restart. */
  readonly pid: number;
  /** Freezes the process: the kernel still accepts connections, but nothing is answered. */
  pause(): void;
  resume(): void;
  /** Ends the process and keeps its data: connections are refused until up(). `kill` ends it with SIGKILL. */
  down(options?: { kill?: boolean }): Promise<void>;
  /** Starts it again on the same port and data; resolves once it answers. */
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
  /** Whether it answers a client of its protocol; may throw until then. */
  answers(): Promise<boolean>;
}

/** Starts a server and resolves once it answers. */
export async function startPrivateServer(server: ServerDescription): Promise<PrivateServer> {
  const { name, url, port, directory } = server;
  const launch = async () => {
    const group = spawnGroup(server.command);
    await whenReady(group, server.answers, { what: `${name} on port ${port}`, within: START_MS });
    return group;
  };
  let group = await launch();

  const down = async ({ kill = false } = {}) => {
    group.signal(kill ? 'SIGKILL' : 'SIGTERM');
    // A frozen process handles SIGTERM only once it continues.
    group.signal('SIGCONT');
    await whenGone(group, { what: `the end of ${name}`, within: START_MS });
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

/** A server given by its URL: usable, but not to be stopped or frozen. */
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

/** The kernel stops a process with a delay; on a busy machine its threads may still answer. */
function waitUntilStopped(pid: number): void {
  const isStopped = (thread: string) => /\) [Tt] /.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8'));
  const end = performance.now() + 5000;
  while (existsSync('/proc/self/task') && !readdirSync(`/proc/${pid}/task`).every(isStopped)) {
    if (performance.now() > end) throw new Error(`process ${pid} does not stop`);
  }
}
