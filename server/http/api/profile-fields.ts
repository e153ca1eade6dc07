import { FIELDS_MARK, type FieldsMark } from '../../../routers/schemas/profile-fields.ts';
import { createCustomFields } from '../../accounts/users/index.ts';
import type { ProfileField } from '../../shared/profile-fields.ts';

type Schema = Record<string, unknown>;

/**
 * Completes the schemas of the operator's own fields in a public document, where their mark is; removes them without
 * fields. Names of fields that users may not read are not told.
 */
export function withProfileFields<Document extends object>(document: Document, all: readonly ProfileField[]): Document {
  const fields = all.filter(({ read }) => read !== 'services');
  const { jsonSchemas } = createCustomFields(fields);
  const ofAll = createCustomFields(all);

  const completed = ({ [FIELDS_MARK]: mark, tsType, ...schema }: Schema): Schema | undefined => {
    const open = mark as FieldsMark;
    const properties = jsonSchemas(open);
    const isWritten = 'write' in open;
    const required = fields
      .filter((field) => (isWritten && open.isNew ? field.required : !isWritten && field.name in properties))
      .map(({ name }) => name);
    const count = Object.keys(ofAll.jsonSchemas(open)).length;
    if (count === 0) return undefined;
    return {
      ...schema,
      type: 'object',
      properties,
      ...(required.length > 0 && { required }),
      additionalProperties: Object.keys(properties).length < count,
    };
  };

  const complete = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(complete);
    if (typeof part !== 'object' || part === null) return part;
    const own = part as Schema;
    const { fields: marked } = (own['properties'] ?? {}) as { fields?: Schema };
    if (!marked || !(FIELDS_MARK in marked)) {
      return Object.fromEntries(Object.entries(own).map(([key, value]) => [key, complete(value)]));
    }
    const { fields: _, ...others } = own['properties'] as Schema;
    const rest = complete({ ...own, properties: others }) as Schema & { properties: Schema; required?: string[] };
    const schema = completed(marked);
    const names = (rest.required ?? []).filter((name) => name !== 'fields');
    const isRequired = schema !== undefined && (rest.required?.includes('fields') || 'required' in schema);
    return {
      ...rest,
      properties: { ...rest.properties, ...(schema && { fields: schema }) },
      ...(rest.required && { required: isRequired ? [...names, 'fields'] : names }),
    };
  };

  return complete(document) as Document;
}
