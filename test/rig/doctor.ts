import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { root } from './service.ts';

const run = promisify(execFile);
const node = join(root, 'node_modules/.bin/node');

export type Environment = Record<string, string>;

export interface Diagnosis {
  code: number;
  /** `level part text`, with single spaces. */
  lines: string[];
}

/** Runs the doctor in an environment, and holds it to say none of the secrets there. */
export async function runDoctor(env: Environment): Promise<Diagnosis> {
  const ended = await runCommand('doctor', env).then(
    (output) => ({ code: 0, ...output }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
  const said = ended.stdout + ended.stderr;
  for (const secret of secretsIn(env)) expect(said).not.toContain(secret);
  const lines = said.trimEnd().split('\n');
  return { code: ended.code, lines: lines.map((line) => line.replace(/ +/g, ' ')) };
}

/** Brings the schema of DATABASE_URL up to date. */
export const migrate = (env: Environment): Promise<unknown> => runCommand('migrate', env);

const runCommand = (name: string, env: Environment) =>
  run(node, [`server/cli/${name}.ts`], { cwd: root, env: { PATH: process.env['PATH'], ...env } });

/** Secrets by their names, and the passwords of addresses. */
const secretsIn = (env: Environment): string[] =>
  Object.entries(env).flatMap(([name, value]) =>
    name.includes('SECRET')
      ? value.split(',')
      : [...value.matchAll(/:([^:@/]+)@/g)].map(([, password = '']) => password),
  );

/** An address with another host, user or the like. */
export const withChanges = (address: string, changes: Partial<URL>): string =>
  Object.assign(new URL(address), changes).href;
