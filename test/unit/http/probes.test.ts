import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { expect, test } from 'vitest';
import { probes } from '../../../server/http/probes.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import type { KeyValueStore } from '../../../server/parts/key-value/contract.ts';

type Answer = 'answers' | Error;

const reply = async (answer: Answer) => {
  if (answer instanceof Error) throw answer;
};

/** What /readyz says of a store that answers PING and a write like this. */
async function readiness(ping: Answer, write: Answer = 'answers') {
  const store = { ping: () => reply(ping), set: () => reply(write) } as unknown as KeyValueStore;
  const database = { ping: () => reply('answers') } as unknown as Database;
  const { signal } = new AbortController();
  const server = new Koa().use(probes({ database, store, stopping: signal }).routes()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/readyz`);
  server.close();
  const { keyValueStore } = (await response.json()) as { keyValueStore: string };
  return [response.status, keyValueStore];
}

const [down, wrongPassword] = [
  new Error('Connection is closed.'),
  new Error('WRONGPASS invalid username-password pair'),
];

test.each([
  ['answers', 'answers', 200, 'ok'],
  ['is away', down, 503, 'unreachable'],
  ['takes no password', wrongPassword, 503, 'refused'],
  ['refuses PING without its disk', new Error('MISCONF Redis is configured to save RDB snapshots'), 200, 'read-only'],
] as const)('/readyz while the store %s', async (_state, ping, status, state) => {
  expect(await readiness(ping)).toEqual([status, state]);
});

test.each([
  ['full memory', new Error('OOM command not allowed'), 200, 'read-only'],
  ['a replica', new Error('READONLY You can’t write against a read only replica.'), 503, 'unreachable'],
  ['a user without this right', new Error('NOPERM this user has no permissions'), 503, 'refused'],
  ['one master of a cluster', down, 200, 'ok'],
] as const)('/readyz while a write fails by %s', async (_cause, write, status, state) => {
  expect(await readiness('answers', write)).toEqual([status, state]);
});
