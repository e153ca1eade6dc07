import { expect, test } from 'vitest';
import { webhookOperations } from '../../../server/http/api/event-operations.ts';
import { probeOperations } from '../../../server/http/api/probe-operations.ts';
import { eventTypes } from '../../../server/shared/event-types.ts';

/** The operations of the document that are no procedures. */
const words = expect.stringMatching(/\w/);
const text = (...values: string[]) => ({ type: 'string', enum: values });
const bodyOf = (properties: Record<string, object>) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});
const answer = (schema: object) => ({ description: words, content: { 'application/json': { schema } } });
const part = text('ok', 'unreachable', 'refused');

test('the probes', () => {
  const errors = { 400: { description: 'VALIDATION_FAILED' } };
  const described = { summary: words, description: words, tags: ['Health'] };
  expect(probeOperations(errors)).toEqual({
    '/livez': {
      get: {
        operationId: 'livez',
        ...described,
        responses: { ...errors, 200: answer(bodyOf({ status: text('ok') })) },
      },
    },
    '/readyz': {
      get: {
        operationId: 'readyz',
        ...described,
        responses: {
          ...errors,
          200: answer(bodyOf({ status: text('ok'), database: text('ok'), keyValueStore: text('ok', 'read-only') })),
          503: answer({
            anyOf: [
              bodyOf({ status: text('error'), database: part, keyValueStore: part }),
              bodyOf({ status: text('stopping') }),
            ],
          }),
        },
      },
    },
  });
});

test('each event is a webhook', () => {
  const webhooks = webhookOperations();
  expect(Object.keys(webhooks)).toEqual(eventTypes);
  expect(webhooks['user.created']).toEqual({
    post: {
      operationId: expect.stringMatching(/^on[A-Z]\w+$/),
      summary: words,
      tags: ['Events'],
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: { $ref: expect.stringMatching(/^#\/components\/schemas\/[A-Z]\w+$/) } },
        },
      },
      responses: { '2XX': { description: 'The event was received' } },
    },
  });
  const ids = Object.values(webhooks).map(({ post }) => post.operationId);
  expect(new Set(ids).size).toBe(eventTypes.length);
});
