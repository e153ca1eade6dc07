import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrate } from '../rig/process/command.ts';
import { runDoctor } from '../rig/process/doctor.ts';
import type { DatabaseCluster } from '../rig/servers/database-cluster.ts';
import { createDatabase } from '../rig/servers/mysql.ts';
import { freePort } from '../rig/servers/port.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { stopAll } from '../rig/servers/redis-cluster.ts';
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
// Killed, because a member without a majority does not end on SIGTERM.
afterAll(() => cluster && stopAll(cluster.nodes));

/** The doctor's findings about the database. */
const diagnosis = async () => {
  const { lines } = await runDoctor(env);
  return lines.filter((line) => line.includes(' database '));
};
/** Resolves once the doctor finds this: nodes need some seconds to detect a failure. */
const says = (line: RegExp) =>
  until(async () => (await diagnosis()).some((said) => line.test(said)), { within: 60_000, what: String(line) });

test('the doctor reports a cluster of three nodes as ok', async () => {
  const said = await diagnosis();
  expect(said.filter((line) => !line.startsWith('ok '))).toEqual([]);
  expect(said).toContain('ok database they are nodes of one cluster');
  expect(said).toContain('ok database their clocks agree');
});

test('the doctor reports a missing node, and a cluster without a majority', async () => {
  const [first, second, third] = cluster.nodes as [PrivateServer, PrivateServer, PrivateServer];
  await third.down({ kill: true });
  await says(new RegExp(`^problem database 127.0.0.1:${third.port}: the database does not answer`));
  await says(new RegExp(`^warning database 127.0.0.1:${first.port}: .* has fewer than three nodes \\(2\\)`));
  await second.down({ kill: true });
  await says(
    new RegExp(`^problem database 127.0.0.1:${first.port}: this (?:node of Galera does not serve|member reaches)`),
  );
});
