/**
 * The operator's own fields of profiles (design/users.md). All values of a user are one JSON object in the user's row, so a
 * read of a profile needs no further query; without configured fields the column is not read. A change of fields takes the
 * lock on the user and is one transaction with its unique values, event and mails.
 */
import type { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import { hashOf } from '../../lib/random-token.ts';
import { type AllTables, isDuplicate } from '../../parts/database/contract.ts';
import {
  type FieldReader,
  type FieldValue,
  type FieldValues,
  type FieldWriter,
  mayAccess,
  type ProfileField,
} from '../../shared/profile-fields.ts';
import { changeSchema, fitting, jsonSchemaOf, MAX_BYTES, tooLarge } from './field-schemas.ts';

/** For each kind of reader. A text has some hundred bytes, and at most MAX_BYTES. */
const MAX_RECENT = 1000;

type StoredValues = Record<string, FieldValue>;

export const storedFields = (stored: string | null | undefined): StoredValues =>
  stored ? (JSON.parse(stored) as StoredValues) : {};

/** The stored form: without unset fields, null for none. VALIDATION_FAILED if it is too long. */
export function toStoredFields(values: FieldValues): string | null {
  const set = Object.entries(values).filter(([, value]) => value !== null);
  if (set.length === 0) return null;
  const stored = JSON.stringify(Object.fromEntries(set));
  if (Buffer.byteLength(stored) <= MAX_BYTES) return stored;
  const { error: message, params } = tooLarge;
  throw new ServiceError('VALIDATION_FAILED', { details: { fields: { message, ...params } } });
}

/** Spellings that readers take for one another are one value: case, compatible characters, invisible ones, spaces. */
const foldedValue = (value: FieldValue): string =>
  String(value)
    .normalize('NFKC')
    // The blank of Braille, and the separators of lines and paragraphs, are of other categories.
    .replace(/[\p{C}\p{Default_Ignorable_Code_Point}\u2800\u2028\u2029]/gu, '')
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKC')
    .replace(/\p{Z}+/gu, ' ')
    .trim();

export const valueHash = (value: FieldValue): string => hashOf(foldedValue(value));

const taken = (name: string) =>
  new ServiceError('FIELD_TAKEN', {
    details: { [`fields.${name}`]: { rule: 'taken', message: 'Already used by another account' } },
  });

interface FieldsOwner {
  id: string;
  fields?: string | null | undefined;
}

const readBy = (fields: readonly ProfileField[], reader: FieldReader) =>
  fields.filter(({ read }) => mayAccess(reader, read));

export const createCustomFields = (fields: readonly ProfileField[] = []) => {
  const isConfigured = fields.length > 0;
  const uniqueNames = fields.filter(({ unique }) => unique).map(({ name }) => name);
  const schemas = new Map<string, z.ZodType<FieldValues>>();

  /** The unique values among these. */
  const uniqueIn = (values: FieldValues) =>
    uniqueNames.flatMap((name) => {
      const value = values[name] ?? null;
      return value === null ? [] : [{ field: name, value_hash: valueHash(value) }];
    });

  /** FIELD_TAKEN, decided by the unique key between concurrent users. */
  const reserve = async (tables: AllTables, userId: string, values: FieldValues): Promise<void> => {
    for (const unique of uniqueIn(values)) {
      await tables
        .insertInto('unique_values')
        .values({ ...unique, user_id: userId })
        .execute()
        .catch((error: unknown) => {
          throw isDuplicate(error) ? taken(unique.field) : error;
        });
    }
  };

  return {
    fields,
    isConfigured,
    /** What a read of accounts selects beside their other columns. */
    columns: isConfigured ? (['fields'] as const) : ([] as const),
    /** The same for reads that show only the public fields. */
    publicColumns: readBy(fields, 'public').length > 0 ? (['fields'] as const) : ([] as const),

    /** Reads the values from the column, unset ones as null. Undefined if no field is open to the reader. */
    valuesFor(reader: FieldReader): ((stored: string | null | undefined) => FieldValues) | undefined {
      const shown = readBy(fields, reader).map((field) => [field.name, fitting(field)] as const);
      if (shown.length === 0) return undefined;
      const valuesIn = (stored: string): FieldValues => {
        const values = storedFields(stored);
        const read: Record<string, FieldValue | null> = {};
        for (const [name, fits] of shown) {
          const value = values[name];
          // A value from before a change of the field: unset until it is written again.
          read[name] = value !== undefined && fits(value) ? value : null;
        }
        return Object.freeze(read);
      };
      // One object for each text: front ends read a profile again and again.
      const recent = new Map<string, FieldValues>();
      return (stored) => {
        const text = stored ?? '';
        const known = recent.get(text);
        if (known) return known;
        const values = valuesIn(text);
        if (recent.size >= MAX_RECENT) recent.clear();
        recent.set(text, values);
        return values;
      };
    },

    /** Validates what a writer sends; `isNew` for a registration. */
    changeSchema(writer: FieldWriter, { isNew = false } = {}): z.ZodType<FieldValues> {
      const key = `${writer} ${isNew}`;
      const schema = schemas.get(key) ?? changeSchema(fields, { writer, isNew });
      schemas.set(key, schema);
      return schema;
    },

    /** JSON Schemas of the fields that are open to `who`, by name. */
    jsonSchemas: (open: { read: FieldReader } | { write: FieldWriter }): Record<string, object> =>
      Object.fromEntries(
        fields
          .filter((field) => ('read' in open ? mayAccess(open.read, field.read) : mayAccess(open.write, field.write)))
          .map((field) => [field.name, jsonSchemaOf(field)]),
      ),

    uniqueIn,

    /** Whether a change has unique values other than the user's own: a refusal tells that another account has one. */
    asksForOthers: (user: FieldsOwner, change: FieldValues): boolean => {
      const own: FieldValues = storedFields(user.fields);
      return uniqueIn(change).some(({ field }) => change[field] !== own[field]);
    },

    /** For a new user, in the transaction that inserts the row. FIELD_TAKEN. */
    reserve,

    /**
     * Changes the fields of a locked user and their unique values. Resolves to the names of the changed ones.
     * FIELD_TAKEN; VALIDATION_FAILED if all fields together are too long.
     */
    async change(tables: AllTables, user: FieldsOwner, change: FieldValues): Promise<string[]> {
      const former: FieldValues = storedFields(user.fields);
      const changed = Object.keys(change).filter((name) => (former[name] ?? null) !== change[name]);
      if (changed.length === 0) return [];
      user.fields = toStoredFields({ ...former, ...change });
      // Also of fields that are no longer unique: their rows would block other users once they are unique again.
      await tables.deleteFrom('unique_values').where('user_id', '=', user.id).where('field', 'in', changed).execute();
      await reserve(tables, user.id, Object.fromEntries(changed.map((name) => [name, change[name] ?? null])));
      return changed;
    },
  };
};

export type CustomFields = ReturnType<typeof createCustomFields>;

/** Frees the unique values of a user. Call before the profile is cleared. */
export async function releaseFields(tables: AllTables, { id, fields }: FieldsOwner): Promise<void> {
  if (fields) await tables.deleteFrom('unique_values').where('user_id', '=', id).execute();
}
