import { validate as isUuid } from 'uuid';
import { z } from 'zod';
import { rule } from '../../server/accounts/users/index.ts';

export const MAX_PAGE = 100;

export const pageLimit = z.coerce
  .number<number>()
  .int()
  .min(1)
  .max(MAX_PAGE)
  .optional()
  .meta({ description: `The maximum, 1 to ${MAX_PAGE}; default ${MAX_PAGE}` });

export const invalidCursor = rule('invalid_cursor', 'Must be a cursor from an earlier page');

/** The cursor of a list ordered by UUID. */
const uuidCursor = z
  .string()
  .refine(isUuid, invalidCursor)
  .optional()
  .meta({ description: 'nextCursor of the previous page' });

/** The input of a list ordered by UUID. */
export const uuidPage = z.object({ limit: pageLimit, cursor: uuidCursor });

/** The output of a list. */
export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.object({
    data: z.array(item),
    nextCursor: z.string().optional().meta({ description: 'Absent on the last page' }),
  });
