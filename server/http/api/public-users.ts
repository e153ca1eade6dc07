import type { Meta } from '../../../routers/trpc.ts';
import type { Config } from '../../config/index.ts';

type OpenApi = NonNullable<Meta['openapi']>;
type PublicUsers = Config['publicUsers'];

/** What the contract of a public read of users becomes by PUBLIC_USERS (routers/public-users.ts). */
export function asPublicUsers(openapi: OpenApi, publicUsers: PublicUsers): OpenApi {
  if (!openapi.isPublicRead) return openapi;
  if (publicUsers === 'session') return { ...openapi, protect: true };
  return publicUsers === 'off' ? { ...openapi, errors: [...openapi.errors, 'NOT_FOUND'] } : openapi;
}

/** The same of its operation in the document. `security` is what calls with a session have, `named` the schemas by their names. */
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

/** A copy of a schema, in which no object has an `email`; the objects that it refers to by name are in its place. */
const withoutEmail = <Schema>(schema: Schema, named: Record<string, unknown>): Schema =>
  JSON.parse(JSON.stringify(schema), (key, value) => {
    if (key === 'properties') return Object.fromEntries(Object.entries(value).filter(([field]) => field !== 'email'));
    if (key === 'required' && Array.isArray(value)) return value.filter((field) => field !== 'email');
    const name = /^#\/components\/schemas\/(\w+)$/.exec(value?.$ref ?? '')?.[1];
    return name === undefined ? value : withoutEmail(named[name], named);
  });
