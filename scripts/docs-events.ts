import { z } from 'zod';
import { exampleOf, publicEvents } from '../server/events/catalogue.ts';
import { eventTypes } from '../server/shared/event-types.ts';
import { generatedPage, table } from './generated-page.ts';

/** `npm run docs:events`: the types of docs/events.md, from the catalogue. */
type JsonSchema = z.core.JSONSchema.BaseSchema;

/** Documented once on the page. */
const common = ['userId', 'actor'];

const typeOf = ({ type, items }: JsonSchema) =>
  type === 'array' ? `list of ${(items as JsonSchema).type}s` : `${type}`;

const sections = eventTypes.map((type) => {
  const { sentence, data } = publicEvents[type];
  const { properties = {}, required = [] } = z.toJSONSchema(data) as JsonSchema;
  const rows = Object.entries(properties as Record<string, JsonSchema>)
    .filter(([name]) => !common.includes(name))
    .map(([name, field]) => [
      `\`${name}\``,
      `${typeOf(field)}${required.includes(name) ? '' : ', if any'}`,
      field.description ?? '',
    ]);
  const fields = rows.length > 0 ? [table(['Field of `data`', 'Type', 'Meaning'], rows)] : [];
  const example = `\`\`\`json\n${JSON.stringify(exampleOf(type).data)}\n\`\`\``;
  return [`### ${type}`, sentence, ...fields, example].join('\n\n');
});

export const eventsPage = generatedPage('events.md', sections.join('\n\n'));
if (import.meta.main) eventsPage.write();
