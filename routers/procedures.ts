/*
 * What tRPC stores about the procedures and does not document, `_def`. Only this file reads it;
 * test/unit/http/trpc-internals.test.ts lists what it needs.
 */

import { type AnyTRPCProcedure, getTRPCErrorShape, type TRPCError, type TRPCProcedureType } from '@trpc/server';
import type { z } from 'zod';
import { appRouter } from './index.ts';
import type { Meta } from './trpc.ts';

export interface Procedure {
  /** Such as `auth.login`. */
  name: string;
  type: TRPCProcedureType;
  meta: Meta | undefined;
  /** Several if the input is parsed in parts. */
  inputs: z.ZodType[];
  output: z.ZodType;
}

export const procedures: readonly Procedure[] = Object.entries<AnyTRPCProcedure>(
  appRouter._def.procedures as never,
).map(([name, { _def }]) => {
  const { type, meta, inputs, output } = _def as AnyTRPCProcedure['_def'] &
    Pick<Procedure, 'meta' | 'inputs' | 'output'>;
  return { name, type, meta, inputs, output };
});

const names = new Set(procedures.map(({ name }) => name));

export const isProcedure = (name: string): boolean => names.has(name);

interface RestProcedure extends Pick<Procedure, 'name' | 'type'> {
  scope: Meta['scope'];
  openapi: NonNullable<Meta['openapi']>;
}

export const restProcedures: RestProcedure[] = procedures.flatMap(({ name, type, meta }) =>
  meta?.openapi ? [{ name, type, scope: meta.scope, openapi: meta.openapi }] : [],
);

/** An error as tRPC sends it. `path` is empty for an error of the whole request. */
export const errorShapeOf = (error: TRPCError, { path, type }: { path: string; type: TRPCProcedureType }) =>
  getTRPCErrorShape({ config: appRouter._def._config, error, type, path, input: undefined, ctx: undefined });
