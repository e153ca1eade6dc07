import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { mastersOf } from './redis.ts';
import type { Stack } from './stack.ts';

/** What the service's key-value store holds under a key, seen past the service. */
export interface Entry {
  key: string;
  value: string;
  /** How long it is kept from now on; `Infinity` for ever. */
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
  const keys = await Promise.all((await mastersOf(redis)).map((server) => server.keys('*')));
  return Promise.all(
    keys.flat().map(async (key) => {
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
