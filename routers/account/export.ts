import { z } from 'zod';
import { type AccountExport, type ColumnKind, storedData } from '../../server/accounts/data/index.ts';
import { ServiceError } from '../../server/errors.ts';
import { isPages, type Pages } from '../../server/lib/pages.ts';
import { unixSeconds } from '../schemas/unix-seconds.ts';
import { variant } from '../schemas/variant.ts';
import { recentProcedure } from '../trpc.ts';

const kinds = {
  text: z.string(),
  ownText: z.string(),
  optionalText: z.string().nullable(),
  mailDetail: z.string().nullable(),
  number: z.int(),
  optionalNumber: z.int().nullable(),
  flag: z.boolean(),
  time: unixSeconds,
  optionalTime: unixSeconds.nullable(),
  details: z.record(z.string(), z.string()).nullable(),
  fields: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])).exactOptional(),
  variants: z.array(variant.omit({ url: true })),
} as const satisfies Record<ColumnKind, z.ZodType>;

type ShapeOf<Fields extends Readonly<Record<string, ColumnKind>>> = {
  -readonly [Field in keyof Fields]: (typeof kinds)[Fields[Field]];
};

const row = <const Fields extends Readonly<Record<string, ColumnKind>>>(fields: Fields) =>
  z.object(Object.fromEntries(Object.entries(fields).map(([field, kind]) => [field, kinds[kind]])) as ShapeOf<Fields>);

/** Pages of rows: an array in the document and for typed clients. */
function rows<Item extends z.ZodType>(item: Item) {
  const array = z.array(item);
  const pages = z.custom<Pages<z.output<Item>>>(isPages);
  pages._zod.processJSONSchema = (...given) => array._zod.processJSONSchema?.(...given);
  return pages;
}

type RowsOf<Fields extends Readonly<Record<string, ColumnKind>>> = ReturnType<
  typeof rows<z.ZodObject<ShapeOf<Fields>>>
>;
const { profile, uploads, ...plain } = storedData;
const plainParts = Object.fromEntries(
  Object.entries(plain).map(([part, { exported }]) => [part, rows(row(exported))]),
) as { [Part in keyof typeof plain]: RowsOf<(typeof plain)[Part]['exported']> };

const exported = z.object({
  profile: row(profile.exported),
  ...plainParts,
  uploads: rows(row(uploads.exported).extend({ url: z.string(), variants: z.array(variant) })),
});

/** Counts the call once it is allowed. */
const exportProcedure = recentProcedure.use(async ({ ctx, next }) => {
  await ctx.limits.enforce('export', ctx.session.user.id);
  return next();
});

export const accountExport = exportProcedure
  .meta({
    openapi: {
      method: 'GET',
      path: '/api/account/export',
      summary: 'Everything that is stored about the logged-in user',
      description:
        'One JSON document, streamed: an aborted response is incomplete. Mails are those of the last week. Over tRPC at most 10000 rows.',
      tags: ['Account'],
      protect: true,
      attachment: 'account.json',
      errors: ['REAUTHENTICATION_REQUIRED', 'RATE_LIMITED'],
    },
  })
  .output(exported)
  .query(async ({ ctx }): Promise<AccountExport> => {
    const document = await ctx.accounts.exportAccount(ctx.session.user.id);
    // The user was deleted after the session was read.
    if (!document) throw new ServiceError('UNAUTHENTICATED');
    return document;
  });
