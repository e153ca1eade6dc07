import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrate } from '../rig/command.ts';
import type { DatabaseCluster } from '../rig/database-cluster.ts';
import { runDoctor } from '../rig/doctor.ts';
import { createDatabase } from '../rig/mysql.ts';
import { freePort } from '../rig/port.ts';
import type { PrivateServer } from '../rig/private-server.ts';
import { stopAll } from '../rig/redis-cluster.ts';
import { until } from '../rig/until.ts';
import { startDatabaseCluster } from './stack.ts';

let cluster: DatabaseCluster;
let env: Record<string, string>;
beforeAll(async () => {
  cluster = await startDatabaseCluster();
  await cluster.settled();
  const { pathname } = new URL(await createDatabase((cluster.nodes[0] as PrivateServer).url));
  env = { DATABASE_URL: cluster.url + pathname, PORT: String(await freePort()), HOST: '127.0.0.1' };
  await migrate(env);
});
// At once: a member without a majority does not end when it is told to.
afterAll(() => cluster && stopAll(cluster.nodes));

/** What the doctor says of the database. */
const diagnosis = async () => {
  const { lines } = await runDoctor(env);
  return lines.filter((line) => line.includes(' database '));
};
/** Resolves once it says this: the nodes take some seconds to miss one. */
const says = (line: RegExp) =>
  until(async () => (await diagnosis()).some((said) => line.test(said)), { within: 60_000, what: String(line) });

test('three nodes of one cluster are as they should be', async () => {
  const said = await diagnosis();
  expect(said.filter((line) => !line.startsWith('ok '))).toEqual([]);
  expect(said).toContain('ok database they are nodes of one cluster');
  expect(said).toContain('ok database their clocks agree');
});

test('a node that is gone is found, and then a cluster that has lost its majority', async () => {
  const [first, second, third] = cluster.nodes as [PrivateServer, PrivateServer, PrivateServer];
  await third.down({ kill: true });
  await says(new RegExp(`^problem database 127.0.0.1:${third.port}: the database does not answer`));
  await says(new RegExp(`^warning database 127.0.0.1:${first.port}: .* has fewer than three nodes \\(2\\)`));
  await second.down({ kill: true });
  await says(
    new RegExp(`^problem database 127.0.0.1:${first.port}: this (?:node of Galera serves nothing|member reaches)`),
  );
});
