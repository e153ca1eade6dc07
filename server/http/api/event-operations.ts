import { publicEvents, schemaNameOf } from '../../events/catalogue.ts';
import { eventTypes } from '../../shared/event-types.ts';

/** The public events as `webhooks` of OpenAPI 3.1. */
export const webhookOperations = () =>
  Object.fromEntries(
    eventTypes.map((type) => [
      type,
      {
        post: {
          operationId: `on${schemaNameOf(type)}`,
          summary: publicEvents[type].sentence,
          tags: ['Events'],
          requestBody: {
            required: true,
            content: { 'application/json': { schema: { $ref: `#/components/schemas/${schemaNameOf(type)}` } } },
          },
          responses: { '2XX': { description: 'The event was received' } },
        },
      },
    ]),
  );
