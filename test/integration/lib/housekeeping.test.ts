import { describe, expect, inject, test, vi } from 'vitest';
import { createInboxTurns } from '../../../server/accounts/mail/inbox-turns.ts';
import { createOutbox } from '../../../server/accounts/mail/outbox.ts';
import { createSessionRows } from '../../../server/accounts/sessions/rows.ts';
import { createActivity } from '../../../server/activity/index.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { createHousekeeping } from '../../../server/workers/housekeeping.ts';
import { stackNames } from '../../contract/rig/scenario.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';
import { until } from '../../rig/until.ts';

const OLD_ROWS = 2500;
const rate = { points: 1, seconds: 1 };
const log = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn(), fatal: vi.fn() };

describe.each(stackNames)('on %s parts', (kind) => {
  test('settled mails older than a week and expired sessions are deleted, and no others', async () => {
    const dataDir = temporaryDirectory('sweep');
    const databaseUrl = kind === 'real' ? await createDatabase(inject('mysqlUrl')) : undefined;
    const database = await openDatabase({ databaseUrl, dataDir });
    try {
      await database.migrate();
      const row = (id: string, state: 'sent' | 'pending', at: number) => ({
        ...{ id, kind: 'verify-email' as const, email: '', inbox: '', user_id: null, token_id: null, detail: null },
        ...{ state, attempts: 1, due_at: Date.now() + 60_000, expires_at: at, created_at: at },
      });
      const rows = [
        ...Array.from({ length: OLD_ROWS }, (_, i) => row(`old-${i}`, 'sent', 1)),
        row('old-pending', 'pending', 1),
        row('new', 'sent', Date.now()),
      ];
      for (let i = 0; i < rows.length; i += 500) {
        await database.write((tables) =>
          tables
            .insertInto('outbox')
            .values(rows.slice(i, i + 500))
            .execute(),
        );
      }
      const session = (id: string, expires_at: number) => ({
        ...{ id, user_id: 'ada', epoch: 0, method: 'password' as const, address: '', device: '' },
        ...{ created_at: 1, authenticated_at: 1, last_used_at: 1, expires_at },
      });
      const sessions = [session('expired', 1), session('alive', Date.now() + 60_000)];
      await database.write((tables) => tables.insertInto('sessions').values(sessions).execute());
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
      const outbox = createOutbox({
        ...{ database, log, rates: { mail: rate, inbox: rate } },
        ...{ turns: createInboxTurns(), compose: async () => undefined },
        admission: { admit: async (due) => due, issueWithinLimits: async () => undefined },
        mail: { send: async () => undefined, close: () => undefined },
      });
      const { sweep } = createSessionRows(database, createActivity(database, { keptDays: 1 }));
      const housekeeping = createHousekeeping({ sweeps: [outbox.sweep, sweep], log });
      housekeeping.start();
      vi.advanceTimersByTime(15 * 60_000);
      const left = () => database.query((tables) => tables.selectFrom('outbox').select('id').orderBy('id').execute());
      await until(async () => (await left()).length === 2, { what: 'the end of the sweep' });
      expect((await left()).map(({ id }) => id)).toEqual(['new', 'old-pending']);
      const sessionsLeft = () => database.query((tables) => tables.selectFrom('sessions').select('id').execute());
      await until(async () => (await sessionsLeft()).length === 1, { what: 'the end of the sweep of sessions' });
      expect(await sessionsLeft()).toEqual([{ id: 'alive' }]);
      await housekeeping.stop();
    } finally {
      vi.useRealTimers();
      await database.close();
      if (databaseUrl) await dropDatabase(databaseUrl);
    }
  });
});
