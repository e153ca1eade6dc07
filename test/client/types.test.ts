import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
// Inside the repository: both sides must find the packages that they import.
const files = ['in-step.ts', 'in-step.json'].map((name) => join(import.meta.dirname, name));
afterAll(() => {
  for (const file of files) rmSync(file, { force: true });
});

/**
 * The client's types are printed from schemas, the router's are inferred from code: what one takes and answers, the other
 * must. A field that the service reads leniently (`unknown`) is the client's to be strict about.
 */
const source = `
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server';
import type { AppRouter as Client } from '../../client/dist/trpc.js';
import type { ErrorCode as ClientCode } from '../../client/dist/index.js';
import type { AppRouter as Server } from '../../routers/index.ts';
import type { ErrorCode as ServerCode } from '../../server/errors.ts';

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
type EachSame<A, B> = { [K in keyof A | keyof B]: K extends keyof A & keyof B ? Same<A[K], B[K]> : false };

type ClientInputs = inferRouterInputs<Client>;
type ServerInputs = inferRouterInputs<Server>;
type ClientOutputs = inferRouterOutputs<Client>;
type ServerOutputs = inferRouterOutputs<Server>;
type Routers = Exclude<keyof ClientInputs | keyof ServerInputs, 'health'>;

type Lenient<T> = { [F in keyof T]-?: unknown extends T[F] ? F : never }[keyof T];
type LenientAsText<T> = {
  [K in keyof T]: T[K] extends FormData | void ? T[K]
    : Lenient<T[K]> extends never ? T[K]
    : Omit<T[K], Lenient<T[K]>> & { [F in Lenient<T[K]>]-?: string };
};

declare const inputs: { [R in Routers]: EachSame<ClientInputs[R], LenientAsText<ServerInputs[R]>> };
declare const outputs: { [R in Routers | 'health']: EachSame<ClientOutputs[R], ServerOutputs[R]> };

type AllTrue<T> = { [R in keyof T]: { [P in keyof T[R]]: true } };
export const inputsAgree: AllTrue<typeof inputs> = inputs;
export const outputsAgree: AllTrue<typeof outputs> = outputs;
export const codesAgree: Same<ClientCode, ServerCode> = true;
`;

test('the client’s types are those of the routers, for every input, answer and code', () => {
  const [file = '', project = ''] = files;
  writeFileSync(file, source);
  writeFileSync(project, JSON.stringify({ extends: '../../tsconfig.json', include: [file], exclude: [] }));
  let said = '';
  try {
    execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', project], { encoding: 'utf8' });
  } catch (error) {
    said = (error as { stdout: string }).stdout;
  }
  expect(said).toBe('');
}, 60_000);
