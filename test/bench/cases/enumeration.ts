import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import type { Case, Result } from '../case.ts';
import { call } from '../client.ts';
import { duration, median } from '../measure.ts';
import type { Parts, Production } from '../parts.ts';
import { addPeople, personEmail } from '../people.ts';

/** Twenty of the larger bursts, because other work on the machine affects some of them. */
const SAMPLES = 1000;
const BURST = 50;
const SLOW_MS = 50;
const PEOPLE = 3;

/**
 * The time of forgot-password for emails with and without an account: a few at once, in bursts, and with a slow
 * database. Emails of both kinds alternate.
 */
export const enumeration: Case = {
  name: 'enumeration',
  isLong: true,
  run: async ({ parts }) => [
    ...(await measured(parts, { slowDatabase: false })),
    ...(await measured(parts, { slowDatabase: true })),
  ],
};

async function measured(parts: Parts, { slowDatabase }: { slowDatabase: boolean }): Promise<Result[]> {
  const { smtp } = await parts.startSinks();
  const options = slowDatabase ? { databaseDelayMs: SLOW_MS } : {};
  return compared(await parts.startProduction({ SMTP_URL: smtp.url }, options), slowDatabase);
}

async function compared({ service, database }: Production, isSlow: boolean): Promise<Result[]> {
  await addPeople(database, PEOPLE);
  const known = await Promise.all(Array.from({ length: SAMPLES }, (_, n) => personEmail(database, n)));
  // Of the same form, so that only the account differs.
  const unknown = known.map((email) => email.replace('@', 'x@'));
  const ask = (email: string) =>
    duration(() =>
      call(`${service.url}/auth/forgot-password`, {
        headers: { 'X-Forwarded-For': clientAddress() },
        body: { email },
      }),
    );
  for (let i = 0; i < BURST; i++) await ask(freshEmail());

  const inBurstsOf = async (size: number) => {
    const times: { known: number[]; unknown: number[] } = { known: [], unknown: [] };
    for (let from = 0; from < SAMPLES; from += size) {
      // Both kinds take turns to be first.
      const kinds = (from / size) % 2 ? (['known', 'unknown'] as const) : (['unknown', 'known'] as const);
      for (const kind of kinds) {
        const emails = (kind === 'known' ? known : unknown).slice(from, from + size);
        times[kind].push(...(await Promise.all(emails.map(ask))));
        // The mails to one kind must not slow the other down.
        await database.query("delete from outbox where state = 'pending'");
      }
    }
    return { known: median(times.known), unknown: median(times.unknown) };
  };

  const results: Result[] = [];
  for (const size of [10, BURST]) {
    const times = await inBurstsOf(size);
    const ratio = times.known / times.unknown;
    results.push({
      what: `POST /auth/forgot-password: with an account, in bursts of ${size}${isSlow ? `, ${SLOW_MS} ms before each answer of the database` : ''}`,
      ours: { p50: times.known },
      others: { 'without an account': { p50: times.unknown } },
      toLimit: { value: Math.max(ratio, 1 / ratio), goal: { atMost: 1.05 } },
    });
  }
  return results;
}
