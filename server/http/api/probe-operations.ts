/** The probes in /openapi.json. They are not procedures: a probe must not depend on the middleware of a call. */

const textOf = (...values: string[]) => ({ type: 'string', enum: values });

const answer = (description: string, ...bodies: Record<string, object>[]) => {
  const schemas = bodies.map((properties) => ({
    type: 'object',
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  }));
  return {
    description,
    content: { 'application/json': { schema: schemas.length > 1 ? { anyOf: schemas } : schemas[0] } },
  };
};

const part = textOf('ok', 'unreachable', 'refused');

/** By path. `errors` are the responses that every request can get. */
export const probeOperations = (errors: Record<string, object>) => ({
  '/livez': {
    get: {
      operationId: 'livez',
      summary: 'Report whether the process runs',
      description:
        'For supervisors that restart a hanging process. Checks no dependency: a restart would not repair one.',
      tags: ['Health'],
      responses: { ...errors, 200: answer('The process runs', { status: textOf('ok') }) },
    },
  },
  '/readyz': {
    get: {
      operationId: 'readyz',
      summary: 'Report whether requests should be sent here',
      description:
        'For load balancers: 503 while a part does not respond, and once the shutdown of the process has begun.',
      tags: ['Health'],
      responses: {
        ...errors,
        200: answer('Ready; while the key-value store is `read-only`, logins fail and existing sessions work', {
          status: textOf('ok'),
          database: textOf('ok'),
          keyValueStore: textOf('ok', 'read-only'),
        }),
        503: answer(
          'A part is missing: `unreachable` may come back by itself, `refused` needs other credentials or rights; or `stopping`',
          { status: textOf('error'), database: part, keyValueStore: part },
          { status: textOf('stopping') },
        ),
      },
    },
  },
});
