import { createClient } from 'account-client';
import { expect, test } from 'vitest';
import { inTime } from '../../rig/until.ts';

const url = 'https://accounts.example.com';

/** A service that never answers, and the signals of its requests. */
function hanging() {
  const signals: (AbortSignal | null | undefined)[] = [];
  const fetch = (_: unknown, { signal }: RequestInit = {}) => {
    signals.push(signal);
    return new Promise<Response>((_resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason));
    });
  };
  return { signals, fetch };
}

test('a call aborted by its caller rejects, beside another call of its tick', async () => {
  const { signals, fetch } = hanging();
  const client = createClient({ url, fetch });
  const stopping = new AbortController();
  const other = client.profile.get.query();
  const call = client.users.get.query({ id: 'user_1' }, { signal: stopping.signal });
  await Promise.race([call, other, expect.poll(() => signals.length).toBeGreaterThan(0)]);
  stopping.abort();
  await expect(inTime(call, { within: 5000, what: 'the abort' })).rejects.toThrow('aborted');
  expect(signals.filter((signal) => signal?.aborted)).toHaveLength(1);
});
