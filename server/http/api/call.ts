import { callTRPCProcedure, getTRPCErrorFromUnknown, TRPCError, type TRPCProcedureType } from '@trpc/server';
import type { Context } from '../../../routers/context.ts';
import { appRouter } from '../../../routers/index.ts';
import { isProcedure } from '../../../routers/procedures.ts';
import { serviceErrorOf } from '../../../routers/trpc.ts';
import { isGuarded } from '../../challenge/index.ts';
import { inSpan } from '../../telemetry/traces.ts';

interface Call {
  /** The procedure's name, such as `auth.login`. */
  path: string;
  type: TRPCProcedureType;
  ctx: Context;
  getRawInput(): Promise<unknown>;
  /** Its place among the calls of a request. */
  batchIndex: number;
}

/** Runs a procedure in a span; rejects with TRPCError. */
export async function callProcedure(call: Call): Promise<unknown> {
  // Only names of known procedures become names of spans.
  if (!isProcedure(call.path)) throw new TRPCError({ code: 'NOT_FOUND' });
  const outcome = await inSpan(call.path, {}, async (span) => {
    try {
      await admit(call);
      return { output: await callTRPCProcedure({ ...call, router: appRouter, signal: undefined }) };
    } catch (thrown) {
      const error = getTRPCErrorFromUnknown(thrown);
      // tRPC's own code maps every unknown error to INTERNAL_SERVER_ERROR, also each ServiceError.
      span?.setAttribute('error.type', serviceErrorOf(error).code);
      return { error };
    }
  });
  if (outcome.error) throw outcome.error;
  return outcome.output;
}

/**
 * Before the input is read: a refused call costs no more than this. Guarded procedures are mutations; any page can have
 * a browser send a read of one, which is refused and must not count.
 */
async function admit({ ctx, path, type }: Call): Promise<void> {
  if (!ctx.challenges || type !== 'mutation' || !isGuarded(path)) return;
  await ctx.challenges.admit({
    procedure: path,
    clientAddress: ctx.clientAddress(),
    solution: ctx.challengeSolution(),
  });
}
