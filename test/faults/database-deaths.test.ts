import { afterAll, beforeAll, expect, test } from 'vitest';
import { asUnknown, violations } from '../rig/observe/history.ts';
import { startMysql } from '../rig/servers/mysql.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { outcomeOf, startLoad, summary, unlimited } from './load.ts';

const DEATHS = 10;

let mysql: PrivateServer;
let stack: Stack;
beforeAll(async () => {
  mysql = await startMysql();
  stack = await startStack('real', { mysqlUrl: mysql.url, env: unlimited, instances: 2 });
});
afterAll(async () => {
  await stack?.stop();
  await mysql?.stop();
});

// checks: F3
test(`${DEATHS} kill -9 of the database under load lose no acknowledged change, and end no process`, async () => {
  const pids = stack.services.map(({ pid }) => pid);
  const load = startLoad({ stack }, { images: false });
  const accepted = () => load.history.filter(({ status }) => status === 200 || status === 201).length;
  const crashes: number[] = [];
  for (let death = 0; death < DEATHS; death++) {
    const before = accepted();
    await expect.poll(accepted, { timeout: 60_000 }).toBeGreaterThan(before + 60);
    crashes.push(performance.now());
    await mysql.down({ kill: true });
    await mysql.up();
    crashes.push(performance.now());
  }
  await load.finish();
  const refused = load.history.filter(({ status }) => status === 503).length;
  expect(refused).toBeGreaterThan(0);
  expect(load.history.filter(({ status = 503 }) => status >= 500 && status !== 503)).toEqual([]);
  expect(violations(load.history.map(asUnknown), await outcomeOf({ stack }, { crashes }))).toEqual([]);
  expect(stack.services.map(({ pid }) => pid)).toEqual(pids);
  console.log(`F3: ${DEATHS} kills of the database; ${summary(load.history)}; refused ${refused}`);
});
