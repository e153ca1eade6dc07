import { clientAddress } from '../../rig/address.ts';
import type { Case, Ratio, Result } from '../case.ts';
import { type Answer, call } from '../client.ts';
import { duration, median } from '../measure.ts';
import type { Parts } from '../parts.ts';
import { addPeople, COMMON, OLD, PASSWORD, personEmail, personId, RARE } from '../people.ts';

const PAIRS = 150;
const SEARCH_PAIRS = 15;
const WARM_UP = 400;
const FEW = 3;
const MANY = 6;
/** The cursor of a search: in the middle of those whose name begins with COMMON. */
const MIDDLE = Buffer.from(JSON.stringify({ name: `${COMMON}lan`, id: '' })).toString('base64url');
const goal = { atMost: 1.2 };
type Bound = Pick<Ratio, 'goal'>;

/** With a million users, to the same with a thousand: what a request costs must not depend on their number. */
export const growth: Case = {
  name: 'growth',
  isLong: true,
  async run({ parts }) {
    const [many, few] = [await startWith(parts, MANY), await startWith(parts, FEW)];
    const compared = (what: string, ask: (of: Populated) => Promise<Answer>, pairs = PAIRS, bound: Bound = { goal }) =>
      inPairs(what, [() => ask(many), () => ask(few)], pairs, bound);
    const page = (what: string, query: (of: Populated) => string, pairs?: number, bound?: Bound) =>
      compared(`GET /api/users, ${what}`, (of) => call(`${of.url}/api/users?limit=20${query(of)}`), pairs, bound);

    for (let i = 0; i < WARM_UP; i++)
      await Promise.all([many, few].map(({ url }) => call(`${url}/api/users?limit=20`)));
    return [
      await compared('GET /api/profile', ({ url, cookie }) => call(`${url}/api/profile`, { headers: { cookie } })),
      await compared('POST /auth/login', logIn, PAIRS / 2),
      await page('first page', () => ''),
      await page('the page after nine tenths', ({ exponent }) => `&cursor=${personId(10 ** exponent / 10)}`),
      await page(`q=${COMMON}, a tenth of all`, () => `&q=${COMMON}`),
      await page(`q=${COMMON}, a page in the middle`, () => `&q=${COMMON}&cursor=${MIDDLE}`),
      // Of a thousand nobody is called so: a full page beside an empty one.
      await page(`q=${RARE}, one in 10,000`, () => `&q=${RARE}`, SEARCH_PAIRS, {}),
      await page(`q=${OLD}, the oldest fiftieth`, () => `&q=${OLD}`, SEARCH_PAIRS),
      await page('q=nobody', () => '&q=nobody', SEARCH_PAIRS),
    ];
  },
};

interface Populated {
  url: string;
  exponent: number;
  /** Of one of the users, and his session. */
  email: string;
  cookie: string;
}

/** A service with 10 to the power of `exponent` users. */
async function startWith(parts: Parts, exponent: number): Promise<Populated> {
  const { service, database } = await parts.startProduction();
  await addPeople(database, exponent);
  await database.query('analyze table users');
  const { url } = service;
  const email = await personEmail(database, 10 ** exponent / 2);
  const { headers } = await logIn({ url, email });
  return { url, exponent, email, cookie: headers['set-cookie']?.[0]?.split(';')[0] ?? '' };
}

const logIn = ({ url, email }: { url: string; email: string }): Promise<Answer> =>
  call(`${url}/auth/login`, {
    headers: { 'X-Forwarded-For': clientAddress() },
    body: { email, password: PASSWORD },
  });

/** One request at a time, of the one and of the other in turn. */
async function inPairs(
  what: string,
  [many, few]: [() => Promise<Answer>, () => Promise<Answer>],
  pairs: number,
  bound: Bound,
): Promise<Result> {
  const times: { many: number; few: number }[] = [];
  for (let i = 0; i < pairs; i++) times.push({ many: await duration(many), few: await duration(few) });
  return {
    what: `${what}, a million users`,
    ours: { p50: median(times.map((pair) => pair.many)) },
    others: { 'a thousand users': { p50: median(times.map((pair) => pair.few)) } },
    toLimit: { value: median(times.map((pair) => pair.many / pair.few)), ...bound },
  };
}
