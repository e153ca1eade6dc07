/** What the types need of a field of PROFILE_FIELDS. The service checks the rest at its start. */
interface Field {
  name: string;
  type: string;
  choices?: string[];
  labels?: { en?: string };
}

const types: Record<string, string> = {
  text: 'string',
  longText: 'string',
  number: 'number',
  boolean: 'boolean',
  date: 'string',
  url: 'string',
};

const isField = (value: unknown): value is Field =>
  typeof value === 'object' &&
  value !== null &&
  'name' in value &&
  typeof value.name === 'string' &&
  /^\w+$/.test(value.name) &&
  'type' in value &&
  typeof value.type === 'string' &&
  (value.type === 'choice' || Object.hasOwn(types, value.type));

const quoted = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;

const typeOf = ({ type, choices = [] }: Field): string =>
  type === 'choice' ? choices.map(quoted).join(' | ') || 'string' : (types[type] ?? 'never');

const comment = ({ type, labels }: Field): string => {
  const text = [labels?.en?.replaceAll('*/', ''), type === 'date' && 'YYYY-MM-DD'].filter(Boolean).join(', ');
  return text && `    /** ${text} */\n`;
};

/** A declaration file that gives the client the types of these fields. Throws if they are no fields. */
export function fieldTypes(fields: unknown): string {
  if (!Array.isArray(fields) || !fields.every(isField)) {
    throw new Error('it must have an array of fields, each with a name and a type');
  }
  const lines = fields.map((field) => `${comment(field)}    ${field.name}: ${typeOf(field)};\n`);
  return `// Printed by \`npx account-client types\`.
export {};

declare module 'account-client' {
  interface ProfileFields {
${lines.join('')}  }
}
`;
}
