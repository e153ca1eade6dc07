import type { ReadTables } from '../parts/database/contract.ts';
import type { Deps } from './deps.ts';
import type { ChallengeScope, PasskeyChallenges } from './passkey-challenges.ts';
import { type Account, type AccountRow, accountColumns, toAccount } from './users.ts';
import {
  type AssertedState,
  type AssertionResponse,
  challengeIn,
  type Descriptor,
  type RequestOptions,
  type WebAuthn,
} from './webauthn.ts';

/** `userId`: only the passkeys of this user are asked for and accepted. */
export interface Asked extends Pick<ChallengeScope, 'browser' | 'userId'> {
  purpose: Exclude<ChallengeScope['purpose'], 'registration'>;
}

/** A passkey that its user has just used, as it was read before the check; or that was refused, maybe as a copy of one. */
export type Assertion =
  | { result: 'accepted'; user: Account; isDeleted: boolean; isBlocked: boolean; passkeyId: string }
  | { result: 'refused' }
  | { result: 'cloned'; user: Account };

interface Parts {
  challenges: PasskeyChallenges;
  webauthn: WebAuthn;
}

const refused = { result: 'refused' } as const;

/** The passkeys of a user, as browsers are told of them. */
export const descriptorsOf = async (tables: ReadTables, userId: string): Promise<Descriptor[]> => {
  const passkeys = tables.selectFrom('passkeys').select(['credential_id as id', 'transports']);
  const rows = await passkeys.where('user_id', '=', userId).orderBy('passkeys.id').execute();
  return rows.map(({ id, transports }) => ({ id, transports: transports === '' ? [] : transports.split(',') }));
};

/** Whether a passkey is used by its user: what a login, its second step and a reauthentication by passkey have in common. */
export const createPasskeyAssertions = ({ database }: Pick<Deps, 'database'>, { challenges, webauthn }: Parts) => {
  const find = async (credentialId: string) => {
    const row = await database.query((tables) =>
      tables
        .selectFrom('passkeys')
        .innerJoin('users', 'users.id', 'passkeys.user_id')
        .select(accountColumns.map((column) => `users.${column}` as const))
        .select(['passkeys.id as passkeyId', 'public_key as publicKey'])
        .select(['deleted_at as deletedAt', 'blocked_at as blockedAt'])
        .where('credential_id', '=', credentialId)
        .executeTakeFirst(),
    );
    if (!row) return undefined;
    const { passkeyId, publicKey, deletedAt, blockedAt, ...user } = row;
    return {
      user: toAccount(user as AccountRow),
      passkeyId,
      publicKey,
      isDeleted: deletedAt !== null,
      isBlocked: blockedAt !== null,
    };
  };

  /**
   * Records a use now. The count that an authenticator signs rises with each use, or is always 0: another one comes from a
   * copy (WebAuthn Level 3, section 6.1.1). One statement compares and stores it, so that of two uses with one count, at
   * whichever instances, one is recorded. Answers false for any other, and where the passkey was removed meanwhile.
   */
  const recordUse = (id: string, { signCount, backupEligible, backedUp }: AssertedState): Promise<boolean> =>
    database.write(async (tables) => {
      const { numUpdatedRows } = await tables
        .updateTable('passkeys')
        .set({
          sign_count: signCount,
          backed_up: Number(backedUp),
          last_used_at: database.now,
        })
        .where('id', '=', id)
        // It never changes (section 6.1.3).
        .where('backup_eligible', '=', Number(backupEligible))
        .where(({ or, and, eb, val }) =>
          or([eb('sign_count', '<', signCount), and([eb('sign_count', '=', 0), eb(val(signCount), '=', 0)])]),
        )
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    }, id);

  return {
    /** The options for the browser's `navigator.credentials.get`. */
    async begin(asked: Asked): Promise<RequestOptions> {
      const { userId } = asked;
      const allowed =
        userId === undefined ? undefined : await database.query((tables) => descriptorsOf(tables, userId));
      return webauthn.requestOptions(await challenges.open(asked), allowed);
    },

    /**
     * Checks what the browser has answered to the options of `begin`, for which the same must have been asked.
     */
    async check(response: AssertionResponse, asked: Asked): Promise<Assertion> {
      const { userId } = asked;
      const challenge = challengeIn(response);
      const isOpen = challenge && (await challenges.take(challenge, asked));
      const found = isOpen ? await find(response.id) : undefined;
      if (!found || !challenge) return refused;
      const { user, passkeyId, publicKey, isDeleted, isBlocked } = found;
      const isUsers = userId === undefined || userId === user.id;
      if (!isUsers || !webauthn.isOf(response, user.id, { isKnown: userId !== undefined })) return refused;
      const state = await webauthn.verifyAssertion(response, { challenge, publicKey });
      if (!state) return refused;
      if (await recordUse(passkeyId, state)) return { result: 'accepted', user, isDeleted, isBlocked, passkeyId };
      return (await find(response.id)) ? { result: 'cloned', user } : refused;
    },
  };
};

export type PasskeyAssertions = ReturnType<typeof createPasskeyAssertions>;
