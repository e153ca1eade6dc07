import { TRPCError } from '@trpc/server';
import { z } from 'zod';
import type { FieldReader, FieldValues, FieldWriter } from '../../server/shared/profile-fields.ts';
import type { Context } from '../context.ts';

/**
 * The operator's own fields (PROFILE_FIELDS), which only a running service knows. These schemas have the type and check
 * nothing; `fieldsIn` checks what is sent. server/http/api/profile-fields.ts completes `/openapi.json` by the mark.
 */

export const FIELDS_MARK = 'x-profile-fields';

export type FieldsMark = { read: FieldReader } | { write: FieldWriter; isNew?: boolean };

const marked = (mark: FieldsMark, description: string) =>
  z
    .custom<FieldValues>()
    .meta({ type: 'object', description, tsType: 'ProfileFieldValues', [FIELDS_MARK]: mark })
    .optional();

/** In an output. */
export const readFields = (read: FieldReader) =>
  marked({ read }, 'The fields of PROFILE_FIELDS that the caller may read, null if unset; absent without any');

/** In an input. */
export const writtenFields = (write: FieldWriter, { isNew = false } = {}) =>
  marked(
    { write, isNew },
    'The fields of PROFILE_FIELDS that the caller may write: only sent fields change, null and an empty text clear',
  );

/** The fields that a writer sends. VALIDATION_FAILED with the path of each. Undefined without configured fields. */
export function fieldsIn(
  { accounts }: Context,
  fields: unknown,
  { write, isNew = false }: { write: FieldWriter; isNew?: boolean },
): FieldValues | undefined {
  const { customFields } = accounts.users;
  if (!customFields.isConfigured || (fields === undefined && !isNew)) return undefined;
  const schema = z.object({ fields: customFields.changeSchema(write, { isNew }) });
  const parsed = schema.safeParse({ fields: fields ?? {} });
  if (!parsed.success) throw new TRPCError({ code: 'BAD_REQUEST', cause: parsed.error });
  return parsed.data.fields;
}
