import { expect, test } from 'vitest';
import { z } from 'zod';
import type { TextStore } from '../../../server/parts/key-value/contract.ts';
import { withNamedValues } from '../../../server/parts/key-value/named-values.ts';

/** A store that returns one text for any key. */
function holding(text: string | null) {
  const stored: string[] = [];
  const texts = {
    get: async () => text,
    take: async () => text,
    set: async (_key: string, text: string) => Boolean(stored.push(text)),
  } as unknown as TextStore;
  return { stored, store: withNamedValues(texts) };
}
const schema = z.object({ user: z.string() });

test('a value is stored as JSON with its key, and read without it', async () => {
  const { stored, store } = holding(null);
  await store.set('session:a', { user: 'ada' }, { ttlMs: 1 });
  expect(stored.map((text) => JSON.parse(text))).toEqual([{ user: 'ada', key: 'session:a' }]);
  const own = holding(stored[0] ?? '').store;
  expect([await own.get('session:a', schema), await own.take('session:a', schema)]).toEqual([
    { user: 'ada' },
    { user: 'ada' },
  ]);
});

// checks: 76
test.each([
  '{"user":"ada","key":"session:a"}',
  '{"user":"ada","key":"pending-login:b"}',
  '{"user":"ada","key":1}',
  '{"user":"ada","key":null}',
])('a value with another key is an outage: %s', async (text) => {
  const { store } = holding(text);
  for (const read of [store.get('session:b', schema), store.take('session:b', schema)]) {
    await expect(read).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  }
});

test.each(['OK', '', '1', 'null', '[]', '"ada"', '{"user":1}', '{"__proto__":{"user":"ada"}}'])(
  'a text that does not match the schema is missing: %s',
  async (text) => {
    const { store } = holding(text);
    expect([await store.get('session:b', schema), await store.take('session:b', schema)]).toEqual([null, null]);
  },
);

test('a value of the previous release, without a key, is read', async () => {
  expect(await holding('{"user":"ada"}').store.get('session:b', schema)).toEqual({ user: 'ada' });
});
