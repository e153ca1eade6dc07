import { hash, randomBytes, randomUUID } from 'node:crypto';
import type { Caller } from '../activity/caller.ts';
import { type AllTables, sql } from '../parts/database/contract.ts';
import type { Deps } from './deps.ts';
import { type Account, lockUser } from './users.ts';

const CODES = 10;
const CODE_BYTES = 10;
/** Crockford's base32: https://www.crockford.com/base32.html. 32 characters, so that 5 bits of a byte choose one evenly. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const GROUPS = /.{4}(?=.)/g;

/** 80 random bits in groups of four characters: `xxxx-xxxx-xxxx-xxxx`. */
function newCode(): string {
  let bits = BigInt(`0x${randomBytes(CODE_BYTES).toString('hex')}`);
  let code = '';
  for (let left = (CODE_BYTES * 8) / 5; left > 0; left--, bits >>= 5n) code += ALPHABET[Number(bits & 31n)];
  return code.replace(GROUPS, '$&-');
}

/** As it is hashed: without what was written between the characters, and with those that it is easily read as. */
const normalized = (code: string): string =>
  code.toLowerCase().replace(/[\s-]/g, '').replaceAll('o', '0').replace(/[il]/g, '1');

/** Random as they are, the codes need no slow hash. */
const hashOf = (code: string): string => hash('sha256', normalized(code), 'base64url');

/** Replaces the codes of a user whose row is locked. Answers the new ones, which are stored nowhere. */
export async function renewCodes(
  tables: AllTables,
  { now }: Pick<Deps['database'], 'now'>,
  userId: string,
): Promise<string[]> {
  const codes = Array.from({ length: CODES }, newCode);
  await tables.deleteFrom('recovery_codes').where('user_id', '=', userId).execute();
  await tables
    .insertInto('recovery_codes')
    .values(
      codes.map((code) => ({
        id: randomUUID(),
        user_id: userId,
        code_hash: hashOf(code),
        created_at: sql<number>`${now}`,
        used_at: null,
      })),
    )
    .execute();
  return codes;
}

/** Uses a code of the user, whom a mail tells of it. Answers false for a wrong or a used one. */
export const createRecoveryCodeUse =
  ({ database, outbox, record }: Pick<Deps, 'database' | 'outbox' | 'record'>) =>
  async ({ id, sessionEpoch }: Account, code: string, caller: Caller): Promise<boolean> => {
    const isUsed = await database.transaction(async (em, tables) => {
      const user = await lockUser(em, { id });
      if (user?.sessionEpoch !== sessionEpoch) return false;
      const { numUpdatedRows } = await tables
        .updateTable('recovery_codes')
        .set({ used_at: sql<number>`${database.now}` })
        .where('user_id', '=', id)
        .where('code_hash', '=', hashOf(code))
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
