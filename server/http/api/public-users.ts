import type { Meta } from '../../../routers/trpc.ts';
import type { Config } from '../../config/index.ts';

type OpenApi = NonNullable<Meta['openapi']>;
type PublicUsers = Config['publicUsers'];

/** Adapts the contract of the public reads of users to PUBLIC_USERS (routers/users/public-read.ts). */
export function asPublicUsers(openapi: OpenApi, publicUsers: PublicUsers): OpenApi {
  if (!openapi.isPublicRead) return openapi;
  if (publicUsers === 'session') return { ...openapi, protect: true };
  return publicUsers === 'off' ? { ...openapi, errors: [...openapi.errors, 'NOT_FOUND', 'OTHER_USER'] } : openapi;
}

/**
 * The same for one operation of the document. `security` is that of calls with a session; `named` are the schemas by
 * name.
 */
export function operationAsPublicUsers<Operation extends { responses: Record<string, Record<string, unknown>> }>(
  operation: Operation,
  publicUsers: PublicUsers,
  { named, security }: { named: Record<string, unknown>; security: unknown },
): Operation {
  if (publicUsers === 'without-email') {
    const { responses } = operation;
    return { ...operation, responses: { ...responses, 200: withoutEmail(responses['200'] ?? {}, named) } };
  }
  return publicUsers === 'session' || publicUsers === 'off' ? { ...operation, security } : operation;
}

/** Copies a schema without `email` in any object. References to named schemas are replaced by the schemas. */
const withoutEmail = <Schema>(schema: Schema, named: Record<string, unknown>): Schema =>
  JSON.parse(JSON.stringify(schema), (key, value) => {
    if (key === 'properties') return Object.fromEntries(Object.entries(value).filter(([field]) => field !== 'email'));
    if (key === 'required' && Array.isArray(value)) return value.filter((field) => field !== 'email');
    const name = /^#\/components\/schemas\/(\w+)$/.exec(value?.$ref ?? '')?.[1];
    return name === undefined ? value : withoutEmail(named[name], named);
  });
