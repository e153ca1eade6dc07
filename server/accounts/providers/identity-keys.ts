import type { ReadTables } from '../../parts/database/contract.ts';
import type { ProvidedIdentity } from '../../parts/identity-provider/contract.ts';
import { isMailAddress, normalizeEmail } from '../users/index.ts';

/** Whether issuer and subject are stored exactly: printable ASCII without outer spaces, at most 255 characters. */
export const isStorableIdentity = ({ issuer, subject }: Pick<ProvidedIdentity, 'issuer' | 'subject'>): boolean =>
  isKey(issuer) && isKey(subject);

const isKey = (text: string) => /^[!-~](?:[ -~]{0,253}[!-~])?$/.test(text);

/** The address stated by the provider, if usable. */
export const addressIn = ({ email }: ProvidedIdentity): string | undefined =>
  email !== undefined && isMailAddress(email) ? normalizeEmail(email) : undefined;

/** The id of the user with this identity. */
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
