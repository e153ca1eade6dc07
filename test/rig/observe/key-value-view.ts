import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { mastersOf } from '../servers/redis.ts';
import type { Stack } from '../stack.ts';

/** Direct access to the service's key-value store. */
export interface Entry {
  key: string;
  value: string;
  /** Its remaining lifetime; `Infinity` for ever. */
  keptMs: number;
}

/** The file of the embedded form. */
function inFile<T>({ services }: Stack, work: (file: DatabaseSync) => T): T {
  const file = new DatabaseSync(join(services[0]?.dataDir ?? '', 'key-value.sqlite'), { timeout: 5_000 });
  try {
    return work(file);
  } finally {
    file.close();
  }
}

/** Every entry with a matching key, including counters. `pattern` is a key with `*` for any text. */
export async function entriesOf(stack: Stack, pattern = '*'): Promise<Entry[]> {
  const { redis } = stack;
  if (!redis) {
    return inFile(stack, (file) =>
      file
        .prepare(
          'select * from (select key, value, expires_at from entries union all select key, points, expire from counters) where key glob ?',
        )
        .all(pattern)
        .map(({ key, value, expires_at }) => ({
          key: String(key),
          value: String(value),
          keptMs: Number(expires_at ?? Infinity) - Date.now(),
        })),
    );
  }
  const servers = await mastersOf(redis);
  const keys = pattern.includes('*')
    ? (await Promise.all(servers.map((server) => server.keys(pattern)))).flat()
    : [pattern];
  const entries = await Promise.all(
    keys.map(async (key) => {
      const [value, ms] = await Promise.all([redis.get(key), redis.pttl(key)]);
      return value === null ? [] : { key, value, keptMs: ms === -1 ? Infinity : ms };
    }),
  );
  return entries.flat();
}

/** The key of a session in the store. */
export async function sessionEntry(stack: Stack, session: string): Promise<Entry> {
  const key = `session:${createHash('sha256').update(session).digest('base64url')}`;
  const [entry] = await entriesOf(stack, key);
  if (!entry) throw new Error('the store does not have the session');
  return entry;
}

/** Makes a stored session this much older, as if it had not been used in that time. */
export async function ageSession(stack: Stack, session: string, ms: number): Promise<void> {
  const { key, value } = await sessionEntry(stack, session);
  const { createdAt, expiresAt, ...rest } = JSON.parse(value) as { createdAt: number; expiresAt: number };
  await replaceEntry(stack, key, JSON.stringify({ ...rest, createdAt: createdAt - ms, expiresAt: expiresAt - ms }));
}

/** Replaces a value and keeps its lifetime. */
export async function replaceEntry(stack: Stack, key: string, value: string): Promise<void> {
  if (stack.redis) await stack.redis.set(key, value, 'KEEPTTL');
  else inFile(stack, (file) => file.prepare('update entries set value = ? where key = ?').run(value, key));
}

/** Restores entries, including deleted ones: a store restored from a snapshot. */
export async function restoreEntries(stack: Stack, entries: Entry[]): Promise<void> {
  for (const { key, value, keptMs } of entries) {
    const ms = Math.round(keptMs);
    if (stack.redis) await stack.redis.set(key, value, 'PX', ms);
    else {
      inFile(stack, (file) =>
        file.prepare('insert or replace into entries values (?, ?, ?)').run(key, value, Date.now() + ms),
      );
    }
  }
}
