import type { Case } from './case.ts';
import { call, repeat } from './client.ts';
import { compare, duration } from './measure.ts';
import type { Parts } from './parts.ts';
import { addPeople, COMMON, OLD, personId, RARE } from './people.ts';

const PAIRS = 150;
const SEARCH_PAIRS = 15;
const WARM_UP = 400;
const FEW = 3;
const MANY = 6;
/** The cursor of a search: in the middle of those whose name begins with COMMON. */
const MIDDLE = Buffer.from(JSON.stringify({ name: `${COMMON}lan`, id: '' })).toString('base64url');

/** The list of users with a million of them, to the same with a thousand: what a page costs must not depend on their number. */
export const users: Case = {
  name: 'users',
  async run(parts) {
    const [many, few] = [await startWith(parts, MANY), await startWith(parts, FEW)];
    const deep = (exponent: number) => `&cursor=${personId(10 ** exponent / 10)}`;
    const page = (what: string, query: (exponent: number) => string, pairs: number) =>
      comparePages(what, { many: `${many}${query(MANY)}`, few: `${few}${query(FEW)}` }, pairs);

    for (const url of [many, few])
      await repeat(
        4,
        (begun) => begun < WARM_UP,
        () => call(url),
      );
    return [
      { ...(await page('first page', () => '', PAIRS)), goal: { atMost: 1.15 } },
      { ...(await page('the page after nine tenths', deep, PAIRS)), goal: { atMost: 1.15 } },
      { ...(await page(`q=${COMMON}, a tenth of all`, () => `&q=${COMMON}`, PAIRS)), goal: { atMost: 1.15 } },
      {
        ...(await page(`q=${COMMON}, a page in the middle`, () => `&q=${COMMON}&cursor=${MIDDLE}`, PAIRS)),
        goal: { atMost: 1.15 },
      },
      await page(`q=${RARE}, one in 10,000`, () => `&q=${RARE}`, SEARCH_PAIRS),
      await page(`q=${OLD}, the oldest fiftieth`, () => `&q=${OLD}`, SEARCH_PAIRS),
      await page('q=nobody', () => '&q=nobody', SEARCH_PAIRS),
    ];
  },
};

/** A service with 10 to the power of `exponent` users; answers the address of its list. */
async function startWith(parts: Parts, exponent: number): Promise<string> {
  const { service, database } = await parts.startProduction();
  await addPeople(database, exponent);
  await database.query('analyze table users');
  return `${service.url}/api/users?limit=20`;
}

async function comparePages(what: string, { many, few }: { many: string; few: string }, pairs: number) {
  const { ours, baseline, ratio } = await compare(pairs, {
    ours: () => duration(() => call(many)),
    baseline: () => duration(() => call(few)),
  });
  return {
    what: `GET /api/users, ${what}: a million users, to a thousand`,
    ours: `${ours.toFixed(2)} ms`,
    baseline: `${baseline.toFixed(2)} ms`,
    value: ratio,
  };
}
