/**
 * What an application is sent when logins at it have ended (OpenID Connect Back-Channel Logout 1.0). An event only says
 * that a session of the user may have ended; the grants are compared with the sessions when it is delivered. So nothing
 * that ends sessions has to name the applications, and a repeated delivery sends only what failed.
 */
import { v7 as uuidv7 } from 'uuid';
import type { PublicEvent } from '../events/index.ts';
import type { Database } from '../parts/database/contract.ts';
import { validGrants } from './grants.ts';
import type { SigningKeys } from './keys.ts';

/** As the OpenID specification recommends. */
const LIFE = '2 minutes';

/** A message to an application. */
export interface LogoutMessage {
  /** The value of `logout_token`. */
  token: string;
  /** Call it once the application has accepted the message. */
  accepted(): Promise<void>;
}

interface Parts {
  database: Database;
  keys: Pick<SigningKeys, 'published'>;
  issuer: string;
}

export const createLogoutTokens = ({ database, keys, issuer }: Parts) => {
  /** The user's logins at the application that have ended, and that it was not told of. */
  const endedLogins = (userId: string, applicationId: string) =>
    database.query((tables) => {
      const open = validGrants(tables, database)
        .select('grants.id')
        .where('sessions.id', 'is not', null)
        .where('grants.user_id', '=', userId)
        .where('grants.application_id', '=', applicationId);
      return tables
        .selectFrom('grants')
        .select(['id', 'epoch'])
        .where('user_id', '=', userId)
        .where('application_id', '=', applicationId)
        .where('logout_told_at', 'is', null)
        .where('id', 'not in', open)
        .execute();
    });

  /** `sid`: only this login has ended; without it, all that the user began before `time`. */
  const sign = async (
    userId: string,
    applicationId: string,
    sid: string | undefined,
    time: string,
  ): Promise<string> => {
    const { importJWK, SignJWT } = await import('jose');
    const [key] = await keys.published();
    if (!key) throw new Error('there is no key to sign with');
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };
    // RFC 8417: a token that is repeated later must not end logins that began since.
    const toe = Math.floor(Date.parse(time) / 1000);
    return new SignJWT({ events, toe, ...(sid !== undefined && { sid }) })
      .setProtectedHeader({ alg: 'ES256', kid: key.kid, typ: 'logout+jwt' })
      .setIssuer(issuer)
      .setAudience(applicationId)
      .setSubject(userId)
      .setJti(uuidv7())
      .setIssuedAt()
      .setExpirationTime(LIFE)
      .sign(await importJWK(key));
  };

  return {
    /** What the application has to be told at an event. */
    async messages(applicationId: string, { type, data, timestamp }: PublicEvent): Promise<LogoutMessage[]> {
      const { userId } = data;
      if (type === 'grant.revoked') {
        // Its grants have ended, and count as told.
        if (data.applicationId !== applicationId) return [];
        return [{ token: await sign(userId, applicationId, data.sid, timestamp), accepted: async () => undefined }];
      }
      const logins = await endedLogins(userId, applicationId);
      return Promise.all(
        logins.map(async ({ id, epoch }) => ({
          token: await sign(userId, applicationId, id, timestamp),
          async accepted() {
            await database.write((tables) =>
              tables
                .updateTable('grants')
                .set({ logout_told_at: database.now })
                .where('id', '=', id)
                // Another epoch: the user has allowed the application again.
                .where('epoch', '=', epoch)
                .execute(),
            );
          },
        })),
      );
    },
  };
};
