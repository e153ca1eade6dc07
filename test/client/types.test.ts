import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { procedures } from '../../routers/procedures.ts';

const root = join(import.meta.dirname, '../..');
// Inside the repository, where both sides find the packages that they import.
const files = ['in-step.ts', 'in-step.json'].map((name) => join(import.meta.dirname, name));
afterAll(() => {
  for (const file of files) rmSync(file, { force: true });
});

/**
 * The client's types are printed from schemas, the router's are inferred: inputs and outputs of both must be
 * assignable to each other. The client is strict about fields that the service reads as `unknown`.
 */
const head = `
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server';
import type { ErrorCode as ClientCode } from '../../client/dist/index.js';
import type { AppRouter as Client } from '../../client/dist/trpc.js';
import type { AppRouter as Server } from '../../routers/index.ts';
import type { ErrorCode as ServerCode } from '../../server/errors.ts';

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
type Lenient<T> = { [F in keyof T]-?: unknown extends T[F] ? F : never }[keyof T];
type SameInput<C, S> = [C] extends [S]
  ? [Lenient<S>] extends [never] ? Same<C, S> : Same<Omit<C, Lenient<S>>, Omit<S, Lenient<S>>>
  : false;

type Collected<T> = { [Name in keyof T]: T[Name] extends AsyncIterable<infer Page> ? Page : T[Name] };

type ClientInputs = inferRouterInputs<Client>;
type ServerInputs = inferRouterInputs<Server>;
type ClientOutputs = inferRouterOutputs<Client>;
type ServerOutputs = inferRouterOutputs<Server>;

export const codes: Same<ClientCode, ServerCode> = true;
`;

const comparison = (procedure: string, i: number) => {
  // Streamed rows are an array for the client.
  const output =
    procedure === 'account.export' ? `Collected<Server['account']['export']['_def']['$types']['output']>` : undefined;
  const at = procedure
    .split('.')
    .map((part) => `['${part}']`)
    .join('');
  return `
// ${procedure}
export const input${i}: SameInput<ClientInputs${at}, ServerInputs${at}> = true;
export const output${i}: Same<ClientOutputs${at}, ${output ?? `ServerOutputs${at}`}> = true;
`;
};

test('the types of the client equal those of the routers, for every input, output and code', () => {
  const [file = '', project = ''] = files;
  writeFileSync(file, [head, ...procedures.map(({ name }, i) => comparison(name, i))].join(''));
  writeFileSync(project, JSON.stringify({ extends: '../../tsconfig.json', include: [file], exclude: [] }));
  let said = '';
  try {
    execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', project], { encoding: 'utf8' });
  } catch (error) {
    said = (error as { stdout: string }).stdout;
  }
  expect(said).toBe('');
});
