import { account } from './account/account.ts';
import { consents } from './account/consents.ts';
import { profile } from './account/profile.ts';
import { applications } from './applications/applications.ts';
import { authorizations } from './applications/authorizations.ts';
import { grants } from './applications/grants.ts';
import { auth } from './auth/auth.ts';
import { health } from './health.ts';
import { activity } from './security/activity.ts';
import { identities } from './security/identities.ts';
import { keys } from './security/keys.ts';
import { passkeys } from './security/passkeys.ts';
import { sessions } from './security/sessions.ts';
import { recoveryCodes, totp } from './security/totp.ts';
import { service } from './service.ts';
import { createCallerFactory, mergeRouters, router } from './trpc.ts';
import { upload } from './uploads/upload.ts';
import { userAdministration } from './users/administration.ts';
import { users } from './users/users.ts';
import { webhooks } from './webhooks/webhooks.ts';

/** Every procedure of the service. REST paths: see each procedure's `openapi`. */
export const appRouter = router({
  auth,
  account,
  sessions,
  identities,
  passkeys,
  keys,
  totp,
  recoveryCodes,
  consents,
  activity,
  users: mergeRouters(users, userAdministration),
  profile,
  upload,
  webhooks,
  applications,
  authorizations,
  grants,
  health,
  service,
});

export type AppRouter = typeof appRouter;

/** The same procedures without HTTP, for callers in this process. */
export const createCaller = createCallerFactory(appRouter);
