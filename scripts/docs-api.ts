import { procedures, restProcedures } from '../routers/procedures.ts';
import { generatedPage, table } from './generated-page.ts';

/** `npm run docs:api`: the table of docs/api.md, from the procedures. */
function accessTo({ scope, openapi }: (typeof restProcedures)[number]): string {
  const { summary, protect, serviceToken, isPublicRead, errors } = openapi;
  if (isPublicRead) return '`PUBLIC_USERS`';
  if (serviceToken) return 'service token';
  if (!protect) return '–';
  if (scope) return `session, or \`${scope}\``;
  const account = summary.endsWith('(administrators)') ? 'administrator' : 'session';
  return errors.includes('REAUTHENTICATION_REQUIRED') ? `${account}, recent` : account;
}

const tags = [...new Set(restProcedures.map(({ openapi }) => openapi.tags[0] ?? ''))];
const sections = tags.map((tag) => {
  const rows = restProcedures
    .filter(({ openapi }) => openapi.tags[0] === tag)
    .map((procedure) => [
      `${procedure.openapi.method} ${procedure.openapi.path}`,
      `\`${procedure.name}\``,
      procedure.openapi.summary.replace(/ \((?:administrators|service token)\)/, ''),
      accessTo(procedure),
    ]);
  return `### ${tag}\n\n${table(['Method and path', 'Procedure', 'Purpose', 'Requires'], rows)}`;
});

const onlyTrpc = procedures
  .filter(({ meta }) => meta?.openapi === undefined)
  .map(({ name, meta }) => [`\`${name}\``, meta?.summary ?? '', 'service token']);

const part = [...sections, `### Only over /trpc\n\n${table(['Procedure', 'Purpose', 'Requires'], onlyTrpc)}`];

export const apiPage = generatedPage('api.md', part.join('\n\n'));
if (import.meta.main) apiPage.write();
