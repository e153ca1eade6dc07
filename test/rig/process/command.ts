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

/** Runs a command for operators, of server/cli. Rejects with its exit code and what it said, if that is not 0. */
export const runCommand = (name: string, env: NodeJS.ProcessEnv, args: readonly string[] = []) =>
  run(node, [`server/cli/${name}.ts`, ...args], { cwd: root, env: { PATH: process.env['PATH'], ...env } });

/** Runs a command, whatever its exit code will be. */
export const runToItsEnd = (name: string, env: NodeJS.ProcessEnv, args: readonly string[] = []): Promise<Ended> =>
  runCommand(name, env, args).then(
    (output) => ({ code: 0, ...output }),
    (error: Ended) => error,
  );

/** Brings the schema of DATABASE_URL up to date. */
export const migrate = (env: NodeJS.ProcessEnv): Promise<unknown> => runCommand('migrate', env);
