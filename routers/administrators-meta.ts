import type { Meta } from './trpc.ts';

type OpenApi = NonNullable<Meta['openapi']>;

const RECENT = 'Needs a session in which a credential was given in the last ten minutes.';

/** The contracts of procedures for administrators under one tag: reads, and changes that want a recent credential. */
export const administratorsMeta = (tag: string) => ({
  read: (path: OpenApi['path'], summary: string, errors: OpenApi['errors'] = []): Meta => ({
    openapi: {
      method: 'GET',
      path,
      summary: `${summary} (administrators)`,
      tags: [tag],
      protect: true,
      errors: ['FORBIDDEN', ...errors],
    },
  }),

  change: (
    method: OpenApi['method'],
    path: OpenApi['path'],
    { summary, description, status, errors = [] }: Pick<OpenApi, 'summary'> & Partial<OpenApi>,
  ): Meta => ({
    openapi: {
      method,
      path,
      summary: `${summary} (administrators)`,
      description: description ? `${description} ${RECENT}` : RECENT,
      tags: [tag],
      protect: true,
      ...(status && { status }),
      errors: ['FORBIDDEN', 'REAUTHENTICATION_REQUIRED', 'RATE_LIMITED', ...errors],
    },
  }),
});
