import { backgroundJob } from '../../activity/caller.ts';
import type { AllTables } from '../../parts/database/contract.ts';
import type { Outbox } from '../mail/index.ts';
import { activeAdministrators } from '../sessions/index.ts';

/** More would not act sooner. */
const MAX_MAILED = 100;

/** Queues a mail to every administrator who can log in, in the caller's transaction. Wake the outbox after the commit. */
export const createMailAdministrators =
  (outbox: Pick<Outbox, 'enqueue'>) =>
  async (tables: AllTables, kind: 'webhook-gone' | 'webhook-failing', detail: string): Promise<void> => {
    const administrators = await activeAdministrators(tables).select('email').limit(MAX_MAILED).execute();
    for (const { id: userId, email } of administrators)
      await outbox.enqueue(tables, { kind, email, userId, detail }, backgroundJob);
  };
