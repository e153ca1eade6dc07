import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { temporaryDirectory } from './custodian.ts';
import { isMutationRun } from './mutation-run.ts';
import { accepts, freePort } from './port.ts';
import { type ProcessGroup, signalIfThere, spawnGroup, whenGone, whenReady } from './process-group.ts';

/** The directory of the code as it is. */
export const root = join(import.meta.dirname, '../..');
const node = join(root, 'node_modules/.bin/node');

export interface ServiceOptions {
  /** Beside, or in place of, what the rig sets; undefined takes a variable away. */
  env?: Record<string, string | undefined>;
  /** False: the service counts as started once its port accepts connections, for parts that are down from the start. */
  ready?: boolean;
  /** By `npm start` itself; otherwise by the command behind it, which takes half a second of CPU less. */
  npm?: boolean;
  /** A file for its log, instead of `output`. */
  stdout?: string;
  /** The directory of the release that runs, instead of the code as it is. */
  tree?: string | undefined;
}

/** What is different from a restart on: `env` goes beside, or in place of, what it was until then. */
export type Changes = { env?: Record<string, string> } & Pick<ServiceOptions, 'tree'>;

/** One process of the service under test. */
export interface Service {
  /** Where it listens: http://127.0.0.1:port. */
  readonly url: string;
  /** Its public address, APP_URL. */
  readonly appUrl: string;
  readonly port: number;
  /** Of the service itself, not of npm: another one after a restart. Undefined while it does not run. */
  readonly pid: number | undefined;
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string>>;
  /**
   * Resolves to the exit code that `npm start` ends with, which is the service's own, once the running process is gone:
   * 128 + n if signal n ended the service alone, null if npm was killed with it.
   */
  readonly exited: Promise<number | null>;
  /** Everything it has written, over all restarts. */
  output(): string;
  /**
   * SIGTERM to the service itself, or SIGINT, which does not wait for further requests; resolves to the exit code. Past
   * `within` ms (15 s) it is killed, and this rejects.
   */
  stop(options?: { within?: number; by?: 'SIGTERM' | 'SIGINT' }): Promise<number | null>;
  /** SIGKILL to the whole process group; resolves once it is gone. */
  kill(): Promise<void>;
  /** To the service's own process, not to npm. */
  signal(name: NodeJS.Signals): void;
  /** Stops it if it runs, and starts it again on the same port and data. */
  restart(changes?: Changes): Promise<void>;
}

/**
 * Starts the service and resolves once GET /readyz answers 200. Rejects, with all output, if the process ends or 20 s pass
 * before that. The data directory is removed when the test process ends.
 */
export async function startService({
  env: changes = {},
  ready = true,
  npm = false,
  stdout,
  tree = root,
}: ServiceOptions = {}): Promise<Service> {
  let env = await environment(changes);
  // What is preloaded into a process needs one of its own.
  if (isMutationRun && !env.NODE_OPTIONS) {
    const { startInProcess } = await import('./in-process.ts');
    return startInProcess(env);
  }
  const port = Number(env.PORT);
  const url = `http://127.0.0.1:${port}`;
  let earlierOutput = '';
  const launch = async () => {
    const command = npm ? { file: 'npm', args: ['start'] } : { file: node, args: ['server/main.ts'] };
    const group = spawnGroup({ ...command, env, cwd: tree, ...(stdout && { stdout }) });
    const condition = ready ? () => isReady(url) : () => accepts(port);
    await whenReady(group, condition, { what: `the service on port ${port}`, within: 20_000 });
    return group;
  };
  let group = await launch();
  const ownProcess = () => {
    if (npm) return nodeProcess(group);
    return group.isRunning() ? group.pid : undefined;
  };

  const signal = (name: NodeJS.Signals) => {
    if (group.isRunning()) signalIfThere(ownProcess() ?? group.pid, name);
  };
  const stop: Service['stop'] = ({ within = 15_000, by = 'SIGTERM' } = {}) => {
    signal(by);
    return whenGone(group, { what: `the end of the service on port ${port} after ${by}`, within });
  };
  return {
    url,
    appUrl: env.APP_URL ?? '',
    port,
    get pid() {
      return ownProcess();
    },
    dataDir: env.DATA_DIR ?? '',
    get env() {
      return env;
    },
    get exited() {
      return group.exited;
    },
    output: () => earlierOutput + group.output(),
    stop,
    async kill() {
      group.signal('SIGKILL');
      await group.exited;
    },
    signal,
    async restart(next = {}) {
      await stop();
      earlierOutput += group.output();
      env = { ...env, ...next.env };
      tree = next.tree ?? tree;
      group = await launch();
    },
  };
}

// Nothing of the test run's own environment reaches the service but what npm needs to find Node and itself. Hashing as the
// contract wants it would be most of what a run takes: tests of hashing set PASSWORD_ITERATIONS themselves.
async function environment(changes: Record<string, string | undefined>): Promise<Record<string, string>> {
  const port = changes.PORT ?? String(await freePort());
  const all = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    TMPDIR: process.env.TMPDIR,
    // A run starts the service some hundred times, a third of each start being compilation.
    NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/compiled'),
    npm_config_update_notifier: 'false',
    npm_config_logs_max: '0',
    HOST: '127.0.0.1',
    APP_URL: `http://localhost:${port}`,
    TRUST_PROXY: '1',
    // Production refuses fewer than the contract's.
    ...(changes.NODE_ENV !== 'production' && { PASSWORD_ITERATIONS: '1000' }),
    ...changes,
    PORT: port,
    DATA_DIR: changes.DATA_DIR ?? temporaryDirectory('data'),
  };
  return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

async function isReady(url: string): Promise<boolean> {
  const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2_000) });
  await response.body?.cancel();
  return response.status === 200;
}

/**
 * The Node process that npm started. Signals go to it directly: what npm passes on ends at the shell in between, if the
 * start script needs one. Undefined before it runs, and where there is no /proc.
 */
function nodeProcess({ pid: npm }: ProcessGroup): number | undefined {
  const members = processes().filter(({ pid, group }) => group === npm && pid !== npm && isNode(pid));
  const pids = new Set(members.map(({ pid }) => pid));
  // The service may have processes of its own below it.
  return members.find(({ parent }) => !pids.has(parent))?.pid;
}

function processes(): { pid: number; parent: number; group: number }[] {
  return entries('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const stat = textOf(`/proc/${name}/stat`);
      // proc_pid_stat(5): pid (name) state parent group …; the name may hold anything, parentheses too.
      const [, parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return parent && group ? [{ pid: Number(name), parent: Number(parent), group: Number(group) }] : [];
    });
}

function entries(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

// Empty for a process that ended meanwhile.
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function isNode(pid: number): boolean {
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`)).startsWith('node');
  } catch {
    return false;
  }
}
