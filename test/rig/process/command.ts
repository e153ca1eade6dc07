import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from './service.ts';

const run = promisify(execFile);
const node = join(root, 'node_modules/.bin/node');

export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** Halves the CPU time of a command. */
const NODE_COMPILE_CACHE = join(root, 'node_modules/.cache/compiled');

/** Runs a command of server/cli, or of another release's. Rejects with its exit code and output unless it exits with 0. */
export const runCommand = (name: string, env: NodeJS.ProcessEnv, args: readonly string[] = [], tree: string = root) =>
  run(node, [`server/cli/${name}.ts`, ...args], {
    cwd: tree,
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE, ...env },
  });

/** Runs a command, whatever its exit code. */
export const runToItsEnd = (name: string, env: NodeJS.ProcessEnv, args: readonly string[] = []): Promise<Ended> =>
  runCommand(name, env, args).then(
    (output) => ({ code: 0, ...output }),
    (error: Ended) => error,
  );

/** Migrates the schema of DATABASE_URL. */
export const migrate = (env: NodeJS.ProcessEnv): Promise<unknown> => runCommand('migrate', env);
