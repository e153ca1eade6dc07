/**
 * The probes in /openapi.json, which are no procedures: an answer of theirs must not wait for, or depend on, what a call goes
 * through.
 */

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

/** By path; `errors` are the answers that every request can meet. */
export const probeOperations = (errors: Record<string, object>) => ({
  '/livez': {
    get: {
      operationId: 'livez',
      summary: 'Report whether the process runs',
      description: 'For what restarts a process that hangs. It looks at no part: a restart would bring none back.',
      tags: ['Health'],
      responses: { ...errors, 200: answer('The process runs', { status: textOf('ok') }) },
    },
  },
  '/readyz': {
    get: {
      operationId: 'readyz',
      summary: 'Report whether requests should be sent here',
      description:
        'For load balancers: 503 from the moment at which the process begins to stop, and while a part does not answer.',
      tags: ['Health'],
      responses: {
        ...errors,
        200: answer('Ready', { status: textOf('ok'), database: textOf('ok'), keyValueStore: textOf('ok') }),
        503: answer(
          'A part is missing: `unreachable` may come back by itself, `refused` needs other credentials or rights; or `stopping`',
          { status: textOf('error'), database: part, keyValueStore: part },
          { status: textOf('stopping') },
        ),
      },
    },
  },
});
