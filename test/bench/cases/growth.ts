import { randomBytes, randomInt } from 'node:crypto';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import { startRedis } from '../../rig/servers/redis.ts';
import type { SmtpSink } from '../../rig/servers/smtp.ts';
import type { Case, Result } from '../case.ts';
import { type Answer, call } from '../client.ts';
import { duration, median } from '../measure.ts';
import type { Parts, Production } from '../parts.ts';
import { addPeople, COMMON, OLD, PASSWORD, personEmail, personId, RARE } from '../people.ts';
import { addSessions } from '../stored-sessions.ts';

const ROUNDS = 300;
/** Requests that hash a password. */
const SLOW_ROUNDS = 60;
/** Warm-up rounds, as a share of the measured ones. */
const WARM_UP = 1 / 3;
/** Logged-in users, chosen at random. */
const LOGGED_IN = 32;
const PAGE = 20;
/** The prefix of many emails and of no name. */
const BY_ADDRESS = 'ada.';
/** The cursor of a search: in the middle of the users whose names start with COMMON. */
const MIDDLE = Buffer.from(JSON.stringify({ name: `${COMMON}lan`, id: '' })).toString('base64url');

/** Powers of ten, the largest first. */
const SIZES = [6, 5, 3];
const QUICK_SIZES = [5, 4, 3];

/**
 * The service with a million users and ten million sessions, compared with a hundredth and a thousandth of that: the
 * cost of a request must not depend on their number.
 */
export const growth: Case = {
  name: 'growth',
  isLong: true,
  async run({ parts, quick }) {
    const { smtp } = await parts.startSinks();
    const services: Populated[] = [];
    try {
      for (const exponent of quick ? QUICK_SIZES : SIZES) services.push(await startWith(parts, smtp, exponent));
      return [...(await requests(services)), ...sizes(services[0] as Populated)];
    } finally {
      for (const { stop } of services) await stop();
    }
  },
};

async function requests(services: Populated[]): Promise<Result[]> {
  const compared = (what: string, ask: (of: Populated) => Promise<Answer>, { rounds = ROUNDS, atMost = 1.2 } = {}) =>
    inTurn(what, services, ask, rounds, atMost);
  const page = (what: string, query: (of: Populated) => string, { entries = PAGE, ...extent }: PageCheck = {}) => {
    const ask = async (of: Populated) => {
      const answer = await call(`${of.url}/api/users?limit=${PAGE}${query(of)}`);
      const { length } = JSON.parse(answer.body).data;
      if (entries !== 'any' && length !== entries) throw new Error(`${what}: ${length} of ${of.people}`);
      return answer;
    };
    return compared(`GET /api/users, ${what}`, ask, extent);
  };

  return [
    await compared('GET /api/profile', ({ url, anyone }) =>
      call(`${url}/api/profile`, { headers: { cookie: anyone().cookie } }),
    ),
    await compared('GET /api/sessions', ({ url, anyone }) =>
      call(`${url}/api/sessions`, { headers: { cookie: anyone().cookie } }),
    ),
    await compared('POST /auth/login', ({ url, anyone }) => logIn(url, anyone().email), { rounds: SLOW_ROUNDS }),
    await compared('POST /auth/register', register, { rounds: SLOW_ROUNDS, atMost: 1.3 }),
    await compared('GET /api/users/:id, anyone', ({ url, people }) =>
      call(`${url}/api/users/${personId(randomInt(people))}`),
    ),
    await page('first page', () => ''),
    await page('page 10,000, or as far in proportion', ({ people }) => `&cursor=${personId(pageTenThousand(people))}`),
    await page('any page', ({ people }) => `&cursor=${personId(randomInt(PAGE, people))}`),
    await page(`q=${COMMON}, a tenth of all`, () => `&q=${COMMON}`),
    await page(`q=${COMMON}, a page in the middle`, () => `&q=${COMMON}&cursor=${MIDDLE}`),
    // Among a thousand users nobody has this name: a full page compared with an empty one.
    await page(`q=${RARE}, one in 10,000`, () => `&q=${RARE}`, { entries: 'any', atMost: Number.POSITIVE_INFINITY }),
    await page(`q=${OLD}, the oldest fiftieth`, () => `&q=${OLD}`),
    await page(`q=${BY_ADDRESS}, by address only`, () => `&q=${BY_ADDRESS}`),
    await page('q=nobody', () => '&q=nobody', { entries: 0 }),
  ];
}

/** The last user before page 10,000 of a million, or before a page at the same relative position. */
const pageTenThousand = (people: number): number => people - Math.floor((people * 9_999 * PAGE) / 1_000_000);

function sizes({ bytesOfUser, bytesOfRow, bytesOfKey }: Populated): Result[] {
  const bytes = (what: string, value: number): Result => ({ what, ours: { other: `${value.toFixed(0)} B` } });
  return [
    bytes('a user in the database, with indexes', bytesOfUser),
    bytes('a session in the database, with indexes', bytesOfRow),
    bytes('a session in the memory of Redis', bytesOfKey),
  ];
}

interface PageCheck {
  /** The expected rows of a page; a full page by default. */
  entries?: number | 'any';
  atMost?: number;
}

interface Populated {
  url: string;
  people: number;
  /** A logged-in user. */
  anyone(): { email: string; cookie: string };
  bytesOfUser: number;
  bytesOfRow: number;
  bytesOfKey: number;
  stop(): Promise<void>;
}

/** A service with 10 to the power of `exponent` users and their sessions. Its Redis writes no file: only memory counts. */
async function startWith(parts: Parts, { url: SMTP_URL }: SmtpSink, exponent: number): Promise<Populated> {
  const redis = await startRedis({ settings: { appendonly: 'no' } });
  try {
    const { service, database } = await parts.startProduction({ SMTP_URL, REDIS_URL: redis.url });
    const people = 10 ** exponent;
    await addPeople(database, exponent);
    const { bytesOfKey } = await addSessions(database, redis.url, exponent);
    const [bytesOfUser, bytesOfRow] = [await bytesOf(database, 'users'), await bytesOf(database, 'sessions')];
    const loggedIn: { email: string; cookie: string }[] = [];
    for (let i = 0; i < LOGGED_IN; i++) {
      const email = await personEmail(database, randomInt(people));
      const { headers } = await logIn(service.url, email);
      loggedIn.push({ email, cookie: headers['set-cookie']?.[0]?.split(';')[0] ?? '' });
    }
    const anyone = () => loggedIn[randomInt(LOGGED_IN)] as (typeof loggedIn)[number];
    return { url: service.url, people, anyone, bytesOfUser, bytesOfRow, bytesOfKey, stop: () => redis.stop() };
  } catch (error) {
    await redis.stop();
    throw error;
  }
}

/** The disk size of a row with its share of the indexes, from statistics that this refreshes. */
async function bytesOf({ query }: Production['database'], table: string): Promise<number> {
  await query(`analyze table ${table}`);
  const [row] = await query<{ bytes: string | number }>(
    `select (clustered_index_size + sum_of_other_index_sizes) * @@innodb_page_size / n_rows as bytes
     from mysql.innodb_table_stats where database_name = database() and table_name = ?`,
    [table],
  );
  return Number(row?.bytes);
}

const logIn = (url: string, email: string): Promise<Answer> =>
  call(`${url}/auth/login`, {
    headers: { 'X-Forwarded-For': clientAddress() },
    body: { email, password: PASSWORD },
  });

const register = ({ url }: Populated): Promise<Answer> =>
  call(`${url}/auth/register`, {
    headers: { 'X-Forwarded-For': clientAddress() },
    // At random positions in the index of emails.
    body: { name: 'Ada Newcomer', email: freshEmail(randomBytes(3).toString('hex')), password: PASSWORD },
    status: 201,
  });

/** One request at a time to each service in turn; the first one changes from round to round. */
async function inTurn(
  what: string,
  services: Populated[],
  ask: (of: Populated) => Promise<Answer>,
  rounds: number,
  atMost: number,
): Promise<Result> {
  const measured = services.map((service) => ({ service, ms: [] as number[] }));
  for (let round = -Math.round(rounds * WARM_UP); round < rounds; round++) {
    const from = Math.abs(round) % measured.length;
    for (const { service, ms } of [...measured.slice(from), ...measured.slice(0, from)]) {
      const time = await duration(() => ask(service));
      if (round >= 0) ms.push(time);
    }
  }
  const times = measured.map(({ service: { people }, ms }) => ({ name: `${people.toLocaleString('en')} users`, ms }));
  const [many, ...others] = times;
  const few = others.at(-1);
  if (!many || !few) throw new Error('there is nothing to compare with');
  return {
    what: `${what}, ${many.name}`,
    ours: { p50: median(many.ms) },
    others: Object.fromEntries(others.map(({ name, ms }) => [name, { p50: median(ms) }])),
    toLimit: {
      value: median(many.ms.map((ms, round) => ms / (few.ms[round] ?? Number.NaN))),
      ...(Number.isFinite(atMost) && { goal: { atMost } }),
    },
  };
}
