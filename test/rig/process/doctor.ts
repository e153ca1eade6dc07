import { expect } from 'vitest';
import { runToItsEnd } from './command.ts';

export type Environment = Record<string, string>;

export interface Diagnosis {
  code: number;
  /** `level part text`, with single spaces. */
  lines: string[];
}

/** Runs the doctor in an environment, and asserts that its output contains no secret. */
export async function runDoctor(env: Environment): Promise<Diagnosis> {
  const ended = await runToItsEnd('doctor', env);
  const said = ended.stdout + ended.stderr;
  for (const secret of secretsIn(env)) expect(said).not.toContain(secret);
  const lines = said.trimEnd().split('\n');
  return { code: ended.code, lines: lines.map((line) => line.replace(/ +/g, ' ')) };
}

/** Secrets by their names, and the passwords in URLs. */
const secretsIn = (env: Environment): string[] =>
  Object.entries(env).flatMap(([name, value]) =>
    name.includes('SECRET')
      ? value.split(',')
      : [...value.matchAll(/:([^:@/]+)@/g)].map(([, password = '']) => password),
  );

/** A URL with another host, user or similar. */
export const withChanges = (address: string, changes: Partial<URL>): string =>
  Object.assign(new URL(address), changes).href;
