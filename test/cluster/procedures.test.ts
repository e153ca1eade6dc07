import { afterAll, beforeAll, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { loggedIn, logIn } from '../contract/rig/scenario.ts';
import { type Deployment, startDeployment } from '../rig/process/deployment.ts';
import { codeBlocks, replaced } from '../rig/process/document.ts';
import { requireBinary } from '../rig/servers/debian.ts';
import { type GaleraCluster, startGalera } from '../rig/servers/galera.ts';
import { findFlavour } from '../rig/servers/mysql.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { startRedis } from '../rig/servers/redis.ts';
import type { Stack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** The procedures of docs/operations.md that need a cluster of databases. */

let redis: PrivateServer;
let cluster: GaleraCluster;
let added: PrivateServer;
let deployment: Deployment;
beforeAll(async () => {
  await requireBinary({ names: ['mariadbd'], debianPackage: 'mariadb-server' });
  redis = await startRedis();
  deployment = await startDeployment(
    { REDIS_URL: redis.url },
    {
      async startDatabase() {
        cluster = await startGalera(await findFlavour(['mariadbd']));
        await cluster.settled();
        return cluster;
      },
      async restartDatabase() {
        const [configuration = ''] = codeBlocks('docs/operations.md', 'Add a node', 'ini');
        added = await cluster.join(({ groupPort }, peers) =>
          replaced(configuration, {
            '10.0.0.1,10.0.0.2,10.0.0.3': peers,
            '10.0.0.4': `127.0.0.1:${groupPort}`,
            '0.0.0.0': '127.0.0.1',
          }),
        );
        return added;
      },
    },
  );
}, 240_000);
afterAll(async () => {
  await deployment?.stop();
  await redis?.stop();
});

test('a node of Galera is added, and the instances go on with it alone', async () => {
  const call = callerOf('rest', [...deployment.instances.values()][0]?.url ?? '');
  const person = await loggedIn({ stack: { waitForMail: deployment.smtp.waitFor } as unknown as Stack, call });
  expect(await deployment.run('Add a node', { blocks: [3, 4] })).toContain('Synced');
  const printed = await deployment.run('Add a node', {
    blocks: [4],
    values: { '10.0.0.4:3306': `127.0.0.1:${added.port}` },
  });
  expect(printed).toContain('they are nodes of one cluster');
  expect((await deployment.setting('DATABASE_URL')).match(/:\d+/g)).toHaveLength(4);
  await cluster.settled();
  // Nodes that are told to end leave the majority to the others.
  for (const node of cluster.nodes) if (node !== added) await node.down();
  await until(() => logIn(call, person), { within: 60_000, every: 200, what: 'a login with the added node' });
}, 240_000);
