import { v7 as uuidv7 } from 'uuid';
import { unavailable } from '../../../errors.ts';
import { hashOf } from '../../../lib/random-token.ts';
import type { AllTables, ReadTables } from '../../../parts/database/contract.ts';
import type { Secrets } from '../../../secrets.ts';
import { type CodeFor, epochIn, hasCode, toDetail } from '../code-detail.ts';
import { codeOf, createMailedTokens, isCodeOf } from './derivation.ts';

const EMAIL_CODE = 'email-code';

/** A code that was mailed to an address. */
export interface MailedCode {
  /** Of the mail. */
  id: string;
  /** Null if the address had no account. */
  userId: string | null;
  /** Undefined if the mail had no code. */
  epoch: number | undefined;
  isRight(code: string): boolean;
}

/** Mailed codes that log in. A code follows from the id of its mail under APP_SECRET; neither it nor the token is stored. */
export const createEmailCodes = (secrets: Secrets) => {
  const mailed = createMailedTokens(secrets);
  const tokenOf = (id: string, detail: string) =>
    mailed.deriveStored(EMAIL_CODE, { id, hash: detail.split(' ', 1)[0] ?? '' });

  return {
    /** A mail to be requested. */
    prepare(): { id: string; detail: string } {
      const id = uuidv7();
      return { id, detail: hashOf(mailed.derive(EMAIL_CODE, id)) };
    },

    /** The detail of an admitted mail. */
    admit: (detail: string, codeFor: CodeFor): string => toDetail(detail, codeFor),

    /** `otherKey` if this process does not have the secret of the mail. */
    derive(id: string, detail: string): { code: string } | 'otherKey' {
      const found = tokenOf(id, detail);
      return found === 'otherKey' ? found : { code: codeOf(found.token) };
    },

    /**
     * The code of a mail. Undefined unless it was admitted: past the limits an address is mailed nothing.
     * SERVICE_UNAVAILABLE without its secret: during a rotation another instance has it.
     */
    async find(tables: ReadTables, id: string): Promise<MailedCode | undefined> {
      const row = await tables
        .selectFrom('outbox')
        .select(['user_id as userId', 'detail'])
        .where('id', '=', id)
        .where('token_id', 'is not', null)
        .executeTakeFirst();
      if (!row?.detail) return undefined;
      const found = tokenOf(id, row.detail);
      if (found === 'otherKey') throw unavailable(new Error('the mail of the code was made with another APP_SECRET'));
      const wasMailed = hasCode(row.detail);
      const isRight = (code: string) => isCodeOf(found.token, code) && wasMailed;
      return { id, userId: row.userId, epoch: epochIn(row.detail), isRight };
    },

    /** The mail belongs to the user whose account it has created. */
    async giveTo(tables: AllTables, { id }: MailedCode, userId: string): Promise<void> {
      await tables.updateTable('outbox').set({ user_id: userId }).where('id', '=', id).execute();
    },
  };
};

export type EmailCodes = ReturnType<typeof createEmailCodes>;
