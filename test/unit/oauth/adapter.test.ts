import { expect, test, vi } from 'vitest';
import { createAdapter } from '../../../server/oauth/adapter.ts';
import { createDeviceCodes } from '../../../server/oauth/device-codes.ts';

test('a refresh token is not replaced while the store, which the access token needs, is down', async () => {
  const change = vi.fn();
  const adapter = createAdapter('RefreshToken', {
    database: { change },
    limits: { enforce: () => Promise.reject(new Error('the store is down')) },
    request: () => ({ sender: '192.0.2.1', replaced: 'the former token' }),
  } as never);
  await expect(adapter.upsert('the new token', { grantId: 'grant' }, 60)).rejects.toThrow('the store is down');
  expect(change).not.toHaveBeenCalled();
});

test('an instance whose clock is ahead finds and answers a device code', async () => {
  const values = new Map<string, object>();
  const codes = createDeviceCodes({
    get: async (key: string) => values.get(key) ?? null,
    set: async (key: string, value: object, { ttlMs }: { ttlMs: number }) => {
      if (ttlMs <= 0) throw new Error('no such time');
      values.set(key, value);
      return true;
    },
    async take(key: string) {
      const value = values.get(key) ?? null;
      values.delete(key);
      return value;
    },
  } as never);
  const now = Math.floor(Date.now() / 1000);
  await codes.insert('device', { userCode: 'USER-CODE', exp: now - 1 }, 1000);
  expect((await codes.find('device'))?.exp).toBeGreaterThan(now);
  expect(await codes.answer('USER-CODE', async () => ({ accountId: 'ada' }))).toBe(true);
  expect((await codes.find('device'))?.accountId).toBe('ada');
});
