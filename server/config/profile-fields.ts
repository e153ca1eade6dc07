import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { type FieldType, fieldReaders, fieldTypes, type ProfileField } from '../shared/profile-fields.ts';
import { languages } from '../shared/texts/languages.ts';
import type { Environment } from './values.ts';

/** The file of PROFILE_FIELDS: the fields that an operator adds to profiles (docs/profile-fields.md). */

/** The names of this many fields fit into the details of one event. */
const MAX_FIELDS = 20;
const MAX_NAME = 32;
const MAX_LABEL = 100;
const MAX_CHOICES = 100;
const MAX_CHOICE = 100;

/** The default and the highest `maxLength`, in code points. */
const lengths: Partial<Record<FieldType, { usual: number; most: number }>> = {
  text: { usual: 200, most: 1000 },
  longText: { usual: 2000, most: 4000 },
  url: { usual: 2048, most: 2048 },
};

const isType = (type: unknown): type is FieldType => typeof type === 'string' && Object.hasOwn(fieldTypes, type);
const longestOf = (type: unknown): number | undefined => (isType(type) ? lengths[type]?.most : undefined);

/** Which bounds a type has. */
const boundsOf: Partial<Record<FieldType, readonly string[]>> = {
  text: ['maxLength'],
  longText: ['maxLength'],
  url: ['maxLength'],
  number: ['min', 'max'],
  choice: ['choices'],
};
const bounds = ['maxLength', 'min', 'max', 'choices'] as const;

const name = z
  .string()
  .regex(
    new RegExp(`^[a-z][A-Za-z0-9_]{0,${MAX_NAME - 1}}$`),
    `must begin with a lower case letter and have at most ${MAX_NAME} letters, digits and _`,
  )
  .refine((text) => !(text in Object.prototype), 'is a name that JavaScript uses');

const line = (longest: number) =>
  z
    .string()
    .refine(
      (text) => text.trim() === text && text !== '' && [...text].length <= longest && !/\p{Cc}|\p{Cs}/u.test(text),
      `must be one line of 1 to ${longest} characters`,
    );

const labels = z.strictObject({
  ...(Object.fromEntries(languages.map((language) => [language, line(MAX_LABEL).optional()])) as Record<
    (typeof languages)[number],
    z.ZodOptional<z.ZodString>
  >),
  en: line(MAX_LABEL),
});

const fields = z
  .array(
    z.strictObject({
      name,
      type: z.enum(Object.keys(fieldTypes) as FieldType[]),
      maxLength: z.int().min(1).optional(),
      min: z.number().optional(),
      max: z.number().optional(),
      choices: z.array(line(MAX_CHOICE)).min(1).max(MAX_CHOICES).optional(),
      labels,
      read: z.enum(fieldReaders).exclude(['administrators']),
      write: z.enum(fieldReaders).exclude(['public']),
      required: z.boolean().default(false),
      unique: z.boolean().default(false),
    }),
  )
  .max(MAX_FIELDS);

/** What may be any JSON, until the schema has accepted it. */
type Given = Partial<Record<keyof ProfileField, unknown>>;

/** The rules between properties, also of a field that breaks others: all problems are told at once. */
function contradictionsIn(given: Given, isNamedBefore: boolean): string[] {
  const { type, min, max, maxLength, choices, read, write } = given;
  const longest = longestOf(type);
  const misplaced = bounds.filter(
    (bound) => given[bound] !== undefined && isType(type) && !boundsOf[type]?.includes(bound),
  );
  const rules: [isBroken: boolean, problem: string][] = [
    [isNamedBefore, 'name is there twice'],
    [longest !== undefined && Number(maxLength ?? 0) > longest, `maxLength must be at most ${longest}`],
    [min !== undefined && max !== undefined && Number(min) > Number(max), 'min must not be above max'],
    [type === 'choice' && choices === undefined, 'choices is missing'],
    [Array.isArray(choices) && new Set(choices).size < choices.length, 'choices must not be repeated'],
    [given.unique === true && type !== 'text', 'unique applies to text only'],
    [write === 'owner' && read === 'services', 'read must be owner or public: the owner writes it'],
    [given.required === true && write !== 'owner', 'required needs write: owner, who registers'],
  ];
  return [
    ...misplaced.map((bound) => `${bound} does not apply to ${String(type)}`),
    ...rules.flatMap(([isBroken, problem]) => (isBroken ? [problem] : [])),
  ];
}

/** The fields of a file, and every problem with it; none without a file. */
export function profileFieldsIn({ PROFILE_FIELDS: path }: Environment): {
  fields: readonly ProfileField[];
  problems: string[];
} {
  if (path === undefined) return { fields: [], problems: [] };
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8').replace(/^\uFEFF/, ''));
  } catch (error) {
    return { fields: [], problems: [`PROFILE_FIELDS ${path} cannot be read: ${(error as Error).message}`] };
  }
  const parsed = fields.safeParse(content);
  const problems = [
    ...(parsed.error?.issues ?? []).map(({ path: [index, ...rest], message }) =>
      index === undefined
        ? `must have an array of at most ${MAX_FIELDS} fields`
        : `${[labelOf(content, index), ...rest].map(String).join('.')} ${message}`,
    ),
    ...objectsIn(content).flatMap((given, i, all) => {
      const isNamedBefore = given.name !== undefined && all.findIndex((other) => other.name === given.name) < i;
      return contradictionsIn(given, isNamedBefore).map((problem) => `${labelOf(content, i)}.${problem}`);
    }),
  ];
  if (!parsed.success || problems.length > 0) {
    return { fields: [], problems: problems.map((problem) => `PROFILE_FIELDS ${problem}`) };
  }
  return { fields: parsed.data.map(withLength), problems: [] };
}

const withLength = (field: ProfileField): ProfileField => {
  const usual = lengths[field.type]?.usual;
  return usual === undefined ? field : { ...field, maxLength: field.maxLength ?? usual };
};

const objectsIn = (content: unknown): Given[] =>
  Array.isArray(content)
    ? content.map((given: unknown) => (given !== null && typeof given === 'object' ? given : {}))
    : [];

/** The name of a field in a problem, or its place. */
function labelOf(content: unknown, index: PropertyKey): string {
  const { name: given } = objectsIn(content)[Number(index)] ?? {};
  return typeof given === 'string' && given !== '' && given.length <= MAX_NAME ? given : `[${String(index)}]`;
}
