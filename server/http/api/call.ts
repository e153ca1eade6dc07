import { callTRPCProcedure, getTRPCErrorFromUnknown, TRPCError, type TRPCProcedureType } from '@trpc/server';
import type { Context } from '../../../routers/context.ts';
import { appRouter } from '../../../routers/index.ts';
import { isProcedure } from '../../../routers/procedures.ts';
import { serviceErrorOf } from '../../../routers/trpc.ts';
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
