import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Stack } from './stack.ts';

/** What the service's key-value store holds under a key, seen past the service. */
export interface Entry {
  key: string;
  value: string;
  /** How long it is kept from now on; `Infinity` for ever. */
  keptMs: number;
}

/** Where the store has a session. */
export const sessionKey = (session: string) => `session:${createHash('sha256').update(session).digest('base64url')}`;

/** The file of the embedded form. */
function inFile<T>({ services }: Stack, work: (file: DatabaseSync) => T): T {
  const file = new DatabaseSync(join(services[0]?.dataDir ?? '', 'key-value.sqlite'), { timeout: 5_000 });
  try {
    return work(file);
  } finally {
    file.close();
  }
}

/** Every entry, those of counters too. */
export async function entriesOf(stack: Stack): Promise<Entry[]> {
  const { redis } = stack;
  if (!redis) {
    return inFile(stack, (file) =>
      file
        .prepare('select key, value, expires_at from entries union all select key, points, expire from counters')
        .all()
        .map(({ key, value, expires_at }) => ({
          key: String(key),
          value: String(value),
          keptMs: Number(expires_at ?? Infinity) - Date.now(),
        })),
    );
  }
  const keys = await redis.keys('*');
  return Promise.all(
    keys.map(async (key) => {
      const [value, ms] = await Promise.all([redis.get(key), redis.pttl(key)]);
      return { key, value: value ?? '', keptMs: ms === -1 ? Infinity : ms };
    }),
  );
}

/** Replaces a value; it is kept for as long as the one before. */
export async function replaceEntry(stack: Stack, key: string, value: string): Promise<void> {
  if (stack.redis) await stack.redis.set(key, value, 'KEEPTTL');
  else inFile(stack, (file) => file.prepare('update entries set value = ? where key = ?').run(value, key));
}

/** Puts entries back as they were, those that have been deleted since too: what a store does that comes from a snapshot. */
export async function restoreEntries(stack: Stack, entries: Entry[]): Promise<void> {
  const { redis } = stack;
  for (const { key, value, keptMs } of entries) {
    if (redis) await redis.set(key, value, 'PX', Math.round(keptMs));
    else
      inFile(stack, (file) =>
        file
          .prepare('insert or replace into entries values (?, ?, ?)')
          .run(key, value, Date.now() + Math.round(keptMs)),
      );
  }
}
