import type { Database, ReadTables } from '../../../parts/database/contract.ts';
import { type Account, type AccountRow, accountColumns, toAccount } from '../../users/index.ts';
import type { ChallengeScope, PasskeyChallenges, RegistrationMode } from './challenges.ts';
import {
  type AssertedState,
  type AssertionResponse,
  challengeIn,
  type Descriptor,
  type RequestOptions,
  type WebAuthn,
} from './webauthn.ts';

/** `userId`: only this user's passkeys are requested and accepted. */
export interface Asked extends Pick<ChallengeScope, 'browser' | 'userId'> {
  purpose: Exclude<ChallengeScope['purpose'], RegistrationMode>;
}

/** A passkey that its user has just used, as read before the check; or a refusal, maybe of an unknown one or a clone. */
export type Assertion =
  | { result: 'accepted'; user: Account; isDeleted: boolean; isBlocked: boolean; passkeyId: string }
  | { result: 'refused' | 'unknown' }
  | { result: 'cloned'; user: Account };

interface Parts {
  database: Database;
  challenges: PasskeyChallenges;
  webauthn: WebAuthn;
}

const refused = { result: 'refused' } as const;

/** A user's passkeys in the form that browsers accept. */
export const descriptorsOf = async (tables: ReadTables, userId: string): Promise<Descriptor[]> => {
  const passkeys = tables.selectFrom('passkeys').select(['credential_id as id', 'transports']);
  const rows = await passkeys.where('user_id', '=', userId).orderBy('passkeys.id').execute();
  return rows.map(({ id, transports }) => ({ id, transports: transports === '' ? [] : transports.split(',') }));
};

/** Verifies passkeys for logins, second steps and reauthentication. */
export const createPasskeyAssertions = ({ database, challenges, webauthn }: Parts) => {
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
   * Records a use. A sign count that does not rise, and is not always 0, comes from a clone (WebAuthn Level 3, 6.1.1).
   * One statement compares and stores, so one of two equal counts wins. Resolves to false if refused, or removed since.
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

    /** Checks a response to the options of `begin`. `asked` must be the same. */
    async check(response: AssertionResponse, asked: Asked): Promise<Assertion> {
      const { userId } = asked;
      const challenge = challengeIn(response);
      if (!challenge || !(await challenges.take(challenge, asked))) return refused;
      const found = await find(response.id);
      if (!found) return { result: 'unknown' };
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
