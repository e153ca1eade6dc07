import type { TRPCClient } from '@trpc/client';
import type { TRPCBuiltRouter, TRPCMutationProcedure, TRPCQueryProcedure } from '@trpc/server';
import type { Client, Mutation, Query } from './api.ts';
import type { ErrorData } from './errors.ts';

/** For tRPC tools, such as @trpc/tanstack-react-query: only this module needs tRPC's types. */

type Procedures<Record> = {
  [Name in keyof Record]: Record[Name] extends Query<infer Input, infer Output>
    ? TRPCQueryProcedure<{ input: Input; output: Output; meta: unknown }>
    : Record[Name] extends Mutation<infer Input, infer Output>
      ? TRPCMutationProcedure<{ input: Input; output: Output; meta: unknown }>
      : Procedures<Record[Name]>;
};

/** The router of the service. */
export type AppRouter = TRPCBuiltRouter<
  { ctx: object; meta: object; errorShape: { message: string; code: number; data: ErrorData }; transformer: false },
  Procedures<Client>
>;

/** A client of `createClient` or `createServiceClient`, as the type that tRPC tools expect. */
export const trpcClient = (client: Client): TRPCClient<AppRouter> => client as TRPCClient<AppRouter>;
