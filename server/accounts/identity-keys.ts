import { unavailable } from '../errors.ts';
import { isDuplicate, type ReadTables } from '../parts/database/contract.ts';
import type { ProvidedIdentity } from '../parts/identity-provider/contract.ts';
import { isMailAddress, normalizeEmail } from './text-rules.ts';

/** How often one decision is tried while concurrent ones are first. */
const ATTEMPTS = 5;

/**
 * Whether issuer and subject can be stored: no two become equal by a trailing space or a letter that the column lacks.
 */
export const isStorableIdentity = ({ issuer, subject }: Pick<ProvidedIdentity, 'issuer' | 'subject'>): boolean =>
  isKey(issuer) && isKey(subject);

const isKey = (text: string) => /^[!-~](?:[ -~]{0,253}[!-~])?$/.test(text);

/** The address that the provider states, if it is usable. */
export const addressIn = ({ email }: ProvidedIdentity): string | undefined =>
  email !== undefined && isMailAddress(email) ? normalizeEmail(email) : undefined;

/** The id of the user that an identity is linked to. */
export async function linkedTo(
  tables: Pick<ReadTables, 'selectFrom'>,
  { issuer, subject }: Pick<ProvidedIdentity, 'issuer' | 'subject'>,
): Promise<string | undefined> {
  const identity = await tables
    .selectFrom('identities')
    .select('user_id')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst();
  return identity?.user_id;
}

/**
 * Decides about an identity, in a transaction. Of two concurrent ones a lock or a unique key decides which is first: the
 * other finds nothing to decide (undefined) or a duplicate, tries again and finds what the first has made.
 */
export async function decide<Decision>(attempt: () => Promise<Decision | undefined>): Promise<Decision> {
  for (let attempts = 0; attempts < ATTEMPTS; attempts++) {
    const decision = await attempt().catch(undefinedIfDuplicate);
    if (decision !== undefined) return decision;
  }
  throw unavailable(new Error('concurrent logins were first each time'));
}

const undefinedIfDuplicate = (error: unknown): undefined => {
  if (!isDuplicate(error)) throw error;
};
