import { type ChildProcess, execFile, fork } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ofProcess, root } from './service.ts';

const runFile = promisify(execFile);
const node = join(root, 'node_modules/.bin/node');

export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** A command of server/cli. */
export interface Run {
  name: string;
  env: NodeJS.ProcessEnv;
  args: readonly string[];
}

/** Halves the CPU time of a command. */
const NODE_COMPILE_CACHE = join(root, 'node_modules/.cache/compiled');

const environment = (changes: NodeJS.ProcessEnv): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'],
  NODE_COMPILE_CACHE,
  ...changes,
});

/** Runs a command of server/cli, or of another release's. Rejects with its exit code and output unless it exits with 0. */
export const runCommand = (name: string, env: NodeJS.ProcessEnv, args: readonly string[] = [], tree: string = root) =>
  runFile(node, [`server/cli/${name}.ts`, ...args], { cwd: tree, env: environment(env) });

const inOwnProcess = ({ name, env, args }: Run): Promise<Ended> =>
  runCommand(name, env, args).then(
    (output) => ({ code: 0, ...output }),
    (error: Ended) => error,
  );

/** The worker's one process for commands, and the run under way. */
let host: ChildProcess | undefined;
let current: PromiseWithResolvers<Ended> | undefined;
/** The commands that this worker has run in processes of their own. */
const known = new Set<string>();

function startHost(): ChildProcess {
  const child = fork(join(import.meta.dirname, 'command-host.ts'), {
    execPath: node,
    execArgv: [],
    cwd: root,
    env: environment({}),
    // A socket of the worker's output would be shut down with the host's.
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  child.on('message', (ended) => current?.resolve(ended as Ended));
  child.once('exit', (code) => {
    host = undefined;
    current?.reject(new Error(`The process for commands ended with exit code ${code}`));
  });
  return child;
}

function inHost(run: Run): Promise<Ended> {
  host ??= startHost();
  const ended = Promise.withResolvers<Ended>();
  current = ended;
  host.send({ ...run, env: environment(run.env) });
  return ended.promise.finally(() => {
    current = undefined;
  });
}

/**
 * Runs a command, whatever its exit code. The first run of each command has a process of its own, and so has one beside
 * another or with settings of a whole process. All others share one, which loads the modules once.
 */
export function runToItsEnd(name: string, env: NodeJS.ProcessEnv, args: readonly string[] = []): Promise<Ended> {
  const run = { name, env, args };
  if (current || !known.has(name) || ofProcess.some((setting) => env[setting] !== undefined)) {
    known.add(name);
    return inOwnProcess(run);
  }
  return inHost(run);
}

/** Migrates the schema of DATABASE_URL. */
export const migrate = (env: NodeJS.ProcessEnv): Promise<unknown> => runCommand('migrate', env);
