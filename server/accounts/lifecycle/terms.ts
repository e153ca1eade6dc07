import type { Database } from '../../parts/database/contract.ts';
import { lockOwner, type Session } from '../sessions/index.ts';
import type { Consents } from '../users/index.ts';

interface Needs {
  database: Database;
  consents: Pick<Consents, 'accept'>;
}

/** Acceptance of the current terms by an existing user. */
export const createTerms = ({ database, consents }: Needs) => ({
  /** VALIDATION_FAILED if `version` is not the current one; UNAUTHENTICATED if the session has ended since. */
  accept: (session: Session, version: string): Promise<void> =>
    database.transaction(async (em, tables) => {
      const { id } = await lockOwner(em, tables, session);
      await consents.accept(tables, id, version);
    }, session.user.id),
});
