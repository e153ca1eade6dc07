import { expect } from 'vitest';
import { runToItsEnd } from './command.ts';

export type Environment = Record<string, string>;

export interface Diagnosis {
  code: number;
  /** `level part text`, with single spaces. */
  lines: string[];
}

/** Runs the doctor in an environment, and holds it to say none of the secrets there. */
export async function runDoctor(env: Environment): Promise<Diagnosis> {
  const ended = await runToItsEnd('doctor', env);
  const said = ended.stdout + ended.stderr;
  for (const secret of secretsIn(env)) expect(said).not.toContain(secret);
  const lines = said.trimEnd().split('\n');
  return { code: ended.code, lines: lines.map((line) => line.replace(/ +/g, ' ')) };
}

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
