import { randomBytes, randomUUID } from 'node:crypto';
import type { Caller } from '../../../activity/caller.ts';
import { hashOf } from '../../../lib/random-token.ts';
import { type AllTables, type Database, sql } from '../../../parts/database/contract.ts';
import type { Outbox, RecordEvent } from '../../mail/index.ts';
import { type Account, type LockedId, lockUser } from '../../users/index.ts';

const CODES = 10;
const CODE_BYTES = 10;
/**
 * Crockford's base32: https://www.crockford.com/base32.html. With 32 characters, 5 bits of a byte choose one uniformly.
 */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const GROUPS = /.{4}(?=.)/g;

/** 80 random bits in groups of four characters: `xxxx-xxxx-xxxx-xxxx`. */
function newCode(): string {
  let bits = BigInt(`0x${randomBytes(CODE_BYTES).toString('hex')}`);
  let code = '';
  for (let left = (CODE_BYTES * 8) / 5; left > 0; left--, bits >>= 5n) code += ALPHABET[Number(bits & 31n)];
  return code.replace(GROUPS, '$&-');
}

/** The hashed form: without separators, and with look-alike characters replaced. */
const normalized = (code: string): string =>
  code.toLowerCase().replace(/[\s-]/g, '').replaceAll('o', '0').replace(/[il]/g, '1');

const hashOfCode = (code: string): string => hashOf(normalized(code));

/** Replaces the recovery codes. Resolves to the new codes, which are not stored in clear. */
export async function renewCodes(
  tables: AllTables,
  { now }: Pick<Database, 'now'>,
  { id: userId }: LockedId,
): Promise<string[]> {
  const codes = Array.from({ length: CODES }, newCode);
  await tables.deleteFrom('recovery_codes').where('user_id', '=', userId).execute();
  await tables
    .insertInto('recovery_codes')
    .values(
      codes.map((code) => ({
        id: randomUUID(),
        user_id: userId,
        code_hash: hashOfCode(code),
        created_at: sql<number>`${now}`,
        used_at: null,
      })),
    )
    .execute();
  return codes;
}

/** Uses a recovery code and queues the mail about it. Resolves to false for a wrong or used code. */
export const createRecoveryCodeUse =
  ({ database, outbox, record }: { database: Database; outbox: Pick<Outbox, 'wake'>; record: RecordEvent }) =>
  async ({ id, sessionEpoch }: Account, code: string, caller: Caller): Promise<boolean> => {
    const isUsed = await database.transaction(async (em, tables) => {
      const user = await lockUser(em, { id });
      if (user?.sessionEpoch !== sessionEpoch) return false;
      const { numUpdatedRows } = await tables
        .updateTable('recovery_codes')
        .set({ used_at: sql<number>`${database.now}` })
        .where('user_id', '=', id)
        .where('code_hash', '=', hashOfCode(code))
        .where('used_at', 'is', null)
        .executeTakeFirst();
      if (numUpdatedRows !== 1n) return false;
      const { left } = await tables
        .selectFrom('recovery_codes')
        .select(({ fn }) => fn.countAll<number>().as('left'))
        .where('user_id', '=', id)
        .where('used_at', 'is', null)
        .executeTakeFirstOrThrow();
      await record(tables, user, { kind: 'recovery-code-used', details: { left: String(left) } }, caller);
      return true;
    }, id);
    if (isUsed) outbox.wake();
    return isUsed;
  };

export type RecoveryCodeUse = ReturnType<typeof createRecoveryCodeUse>;
