import type { AnyTRPCProcedure, TRPCProcedureType } from '@trpc/server';
import { account } from './account.ts';
import { activity } from './activity.ts';
import { auth } from './auth.ts';
import { consents } from './consents.ts';
import { health } from './health.ts';
import { identities } from './identities.ts';
import { passkeys } from './passkeys.ts';
import { profile } from './profile.ts';
import { service } from './service.ts';
import { sessions } from './sessions.ts';
import { recoveryCodes, totp } from './totp.ts';
import { createCallerFactory, type Meta, mergeRouters, router } from './trpc.ts';
import { upload } from './upload.ts';
import { userAdministration } from './user-administration.ts';
import { users } from './users.ts';

/** Every procedure of the service. REST paths: see each procedure's `openapi`. */
export const appRouter = router({
  auth,
  account,
  sessions,
  identities,
  passkeys,
  totp,
  recoveryCodes,
  consents,
  activity,
  users: mergeRouters(users, userAdministration),
  profile,
  upload,
  health,
  service,
});

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
