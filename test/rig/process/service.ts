import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { isMutationRun, runsInProcess } from '../mutation-run.ts';
import { dataDirectory } from '../servers/custodian.ts';
import { accepts, freePort } from '../servers/port.ts';
import { START_MS } from '../until.ts';
import { type ProcessGroup, signalIfThere, spawnGroup, whenGone, whenReady } from './process-group.ts';
import { isReady } from './readiness.ts';

/** The directory of the current code. */
export const root = join(import.meta.dirname, '../../..');
const node = join(root, 'node_modules/.bin/node');

export interface ServiceOptions {
  /** Overrides the rig's environment; undefined removes a variable. */
  env?: Record<string, string | undefined>;
  /** False: the service counts as started once its port accepts connections, for tests that start with parts down. */
  ready?: boolean;
  /** By `npm start`; otherwise by the command behind it, which takes half a second of CPU less. */
  npm?: boolean;
  /** A file for its log, instead of `output`. */
  stdout?: string;
  /** A program that starts the command in its arguments, after these. */
  wrapper?: [file: string, ...args: string[]];
  /** The directory of the release to run, instead of the current code. */
  tree?: string | undefined;
  /** In the process of the test, if the run allows that and the environment needs no other. */
  mayShare?: boolean;
}

/** Settings of a whole process: preloaded code, what main.ts does, the recorders of metrics and traces. */
export const ofProcess = [
  'NODE_OPTIONS',
  'NODE_ENV',
  'METRICS_PORT',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'PROCESSES',
  'CA_FILE',
];

/** Changes at a restart: `env` overrides the environment from then on. */
export type Changes = { env?: Record<string, string> } & Pick<ServiceOptions, 'tree'>;

/** One process of the tested service. */
export interface Service {
  /** Where it listens: http://127.0.0.1:port. */
  readonly url: string;
  /** Its public URL, APP_URL. */
  readonly appUrl: string;
  readonly port: number;
  /** The id of the service process, not of npm; changes at a restart. Undefined while it does not run. */
  readonly pid: number | undefined;
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string>>;
  /**
   * Resolves to the exit code of `npm start`, which is the service's own, once the running process has exited: 128 + n if
   * signal n ended the service alone, null if npm was killed with it.
   */
  readonly exited: Promise<number | null>;
  /** All output, over all restarts. */
  output(): string;
  /**
   * Sends SIGTERM to the service process, or SIGINT, which does not wait for further requests; resolves to the exit code.
   * After `within` ms (30 s) it is killed, and this rejects.
   */
  stop(options?: { within?: number; by?: 'SIGTERM' | 'SIGINT' }): Promise<number | null>;
  /** SIGKILL to the whole process group; resolves once it has ended. */
  kill(): Promise<void>;
  /** To the service process, not to npm. */
  signal(name: NodeJS.Signals): void;
  /** Stops it if it runs, and starts it again on the same port and data. */
  restart(changes?: Changes): Promise<void>;
}

/**
 * Starts the service and resolves once GET /readyz answers 200. Rejects with all output if the process exits, or after
 * a minute. The data directory is removed when the test process ends.
 */
export async function startService({
  env: changes = {},
  ready = true,
  npm = false,
  stdout,
  wrapper,
  tree = root,
  mayShare = false,
}: ServiceOptions = {}): Promise<Service> {
  let env = await environment(changes);
  const shares = mayShare && runsInProcess && tree === root && !ofProcess.some((name) => env[name]);
  if (shares || (isMutationRun && !env.NODE_OPTIONS)) {
    const { startInProcess } = await import('../client/in-process.ts');
    return startInProcess(env);
  }
  const port = Number(env.PORT);
  const url = `http://127.0.0.1:${port}`;
  let earlierOutput = '';
  const launch = async () => {
    const command = npm ? ['npm', 'start'] : [node, 'server/main.ts'];
    const [file = '', ...args] = [...(wrapper ?? []), ...command];
    const group = spawnGroup({ file, args, env, cwd: tree, ...(stdout && { stdout }) });
    const condition = ready ? () => isReady(url) : () => accepts(port);
    await whenReady(group, condition, { what: `the service on port ${port}`, within: START_MS });
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
  const stop: Service['stop'] = ({ within = 30_000, by = 'SIGTERM' } = {}) => {
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

// The service inherits only what npm needs to find Node and itself. Hashing at the contract's cost would dominate a run:
// tests of hashing set PASSWORD_ITERATIONS themselves.
async function environment(changes: Record<string, string | undefined>): Promise<Record<string, string>> {
  const port = changes.PORT ?? String(await freePort());
  const all = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    TMPDIR: process.env.TMPDIR,
    // A run starts the service some hundred times, and compilation takes a third of each start.
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
    DATA_DIR: changes.DATA_DIR ?? dataDirectory('data'),
  };
  return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/**
 * The Node process that npm started. Signals go to it directly: npm passes them only to the shell in between, if the
 * start script needs one. Undefined before it runs, and without /proc.
 */
function nodeProcess({ pid: npm }: ProcessGroup): number | undefined {
  const members = processes().filter(({ pid, group }) => group === npm && pid !== npm && isNode(pid));
  const pids = new Set(members.map(({ pid }) => pid));
  // The service may have child processes.
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

// Empty if the process has ended.
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
