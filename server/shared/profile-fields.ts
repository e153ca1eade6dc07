import type { Language } from './texts/languages.ts';

/** The types of fields, and what a value is in JSON. */
export const fieldTypes = {
  text: 'string',
  longText: 'string',
  number: 'number',
  boolean: 'boolean',
  date: 'string',
  choice: 'string',
  url: 'string',
} as const;

export type FieldType = keyof typeof fieldTypes;
export type FieldValue = string | number | boolean;
/** By name; null is an unset field. */
export type FieldValues = Readonly<Record<string, FieldValue | null>>;

/** From the least trusted: each may do what those before it may. */
export const fieldReaders = ['public', 'owner', 'services', 'administrators'] as const;
export type FieldReader = (typeof fieldReaders)[number];
export type FieldWriter = Exclude<FieldReader, 'public'>;

/** A field of PROFILE_FIELDS (docs/profile-fields.md). */
export interface ProfileField {
  name: string;
  type: FieldType;
  /** In code points; of texts and links. */
  maxLength?: number | undefined;
  /** The bounds of a number. */
  min?: number | undefined;
  max?: number | undefined;
  choices?: readonly string[] | undefined;
  labels: { en: string } & { [Other in Language]?: string | undefined };
  /** Who reads it, beside those who are more trusted. */
  read: Exclude<FieldReader, 'administrators'>;
  write: FieldWriter;
  /** Whether a registration must have it. Then nobody can clear it. */
  required: boolean;
  /** Whether no two users have the same value. */
  unique: boolean;
}

/** True if `who` is one of those that the field is open to, or more trusted. */
export const mayAccess = (who: FieldReader, openTo: FieldReader): boolean =>
  fieldReaders.indexOf(who) >= fieldReaders.indexOf(openTo);

export const labelIn = ({ labels }: Pick<ProfileField, 'labels'>, language: Language): string =>
  labels[language] ?? labels.en;
