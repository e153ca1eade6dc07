import type { DatabaseView } from '../rig/observe/database-view.ts';
import { redisClient } from '../rig/servers/redis.ts';
import { FIRST_MADE, idOf, MADE_EVERY_MS, numbers, uuidOf } from './people.ts';

/** Sessions per user. */
const EACH = 10;
const DAY_MS = 24 * 60 * 60_000;
const LIFE_MS = 7 * DAY_MS;
/** Started in the last six days, so that none expires during the measurement. */
const BEGAN_WITHIN_MS = 6 * DAY_MS;
/** Keys per script: Redis answers nothing else while a script runs. */
const KEYS_AT_ONCE = 20_000;

/**
 * Gives each of 10 to the power of `exponent` users EACH sessions, as rows and keys like the service's. Resolves to the
 * memory of a key in Redis, in bytes. Ten million sessions take two to three minutes.
 */
export async function addSessions(
  database: DatabaseView,
  redisUrl: string,
  exponent: number,
): Promise<{ bytesOfKey: number }> {
  const people = 10 ** exponent;
  const total = people * EACH;
  const every = Math.floor(BEGAN_WITHIN_MS / total);
  const first = Date.now() - every * total;
  // By turn: the nth session of each user before the next of any. A key is the hash of a number: no token exists.
  const addRows = async () => {
    for (let from = 0; from < total; from += people) await database.query(insertRows(exponent, { first, from, every }));
  };
  const redis = redisClient(redisUrl);
  const addKeys = async () => {
    const before = usedMemory(await redis.info('memory'));
    for (let from = 0; from < total; from += KEYS_AT_ONCE) {
      const to = Math.min(total, from + KEYS_AT_ONCE);
      await redis.eval(SET_KEYS, 0, from, to, people, first, every, LIFE_MS, FIRST_MADE, MADE_EVERY_MS);
    }
    return { bytesOfKey: (usedMemory(await redis.info('memory')) - before) / total };
  };
  try {
    const [keys] = await Promise.all([addKeys(), addRows()]);
    return keys;
  } finally {
    redis.disconnect();
  }
}

const usedMemory = (info: string): number => Number(/used_memory:(\d+)/.exec(info)?.[1]);

/** One session per user; the first has the number `from`, and number 0 started at `first`. Times in milliseconds. */
const insertRows = (exponent: number, { first, from, every }: { first: number; from: number; every: number }) =>
  `insert into sessions (id, user_id, epoch, method, address, device, created_at, authenticated_at, last_used_at, expires_at)
   select ${uuidOf('began', `${from} + n`)}, ${idOf('n')}, 0, 'password', '198.51.100.7', 'Firefox on Linux',
     began, began, began - began % 3600000, began + ${LIFE_MS}
   from (select n, ${first} + (${from} + n) * ${every} as began from (${numbers(exponent)}) numbers) sessions
   order by n`;

/** The same sessions as keys of the store, with the length and distribution of a SHA-256 in base64url. */
const SET_KEYS = `
local from, to, people, first, every, life, made, apart = unpack(ARGV)
local function uuid(time, n)
  local hex = string.format('%012x', time)
  return string.format('%s-%s-7000-8000-%012d', hex:sub(1, 8), hex:sub(9), n)
end
for n = from, to - 1 do
  local began, person = first + n * every, n % people
  redis.call('set', 'session:' .. redis.sha1hex(n) .. '-_0', string.format(
    '{"id":"%s","userId":"user_%s","epoch":0,"createdAt":%d,"expiresAt":%d}',
    uuid(began, n), uuid(made + person * apart, person), began, began + life
  ), 'pxat', string.format('%d', began + life))
end
`;
