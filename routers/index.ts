import type { AnyTRPCProcedure, TRPCProcedureType } from '@trpc/server';
import { account } from './account.ts';
import { auth } from './auth.ts';
import { health } from './health.ts';
import { profile } from './profile.ts';
import { service } from './service.ts';
import { sessions } from './sessions.ts';
import { createCallerFactory, type Meta, router } from './trpc.ts';
import { upload } from './upload.ts';
import { users } from './users.ts';

/** Every procedure of the service. REST paths: see each procedure's `openapi`. */
export const appRouter = router({ auth, account, sessions, users, profile, upload, health, service });

export type AppRouter = typeof appRouter;

/** The same procedures without HTTP, for callers in this process. */
export const createCaller = createCallerFactory(appRouter);

interface RestProcedure {
  /** The procedure's name, such as `auth.login`. */
  name: string;
  type: TRPCProcedureType;
  openapi: NonNullable<Meta['openapi']>;
}

/** The procedures that have a REST path. */
export const restProcedures: RestProcedure[] = Object.entries<AnyTRPCProcedure>(appRouter._def.procedures as never)
  .map(([name, { _def }]) => ({ name, type: _def.type, openapi: (_def.meta as Meta | undefined)?.openapi }))
  .filter((procedure): procedure is RestProcedure => procedure.openapi !== undefined);
