import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type ClusterKind, type DatabaseCluster, execute, type Place, startCluster } from './database-cluster.ts';
import { requireBinary, requireFile } from './debian.ts';
import { accountStatements, databaseEnv, type Flavour, serverArguments } from './mysql.ts';
import { freePort } from './port.ts';
import { startPrivateServer } from './private-server.ts';

/** rsync's daemon, which copies a node's data, gives up root: so the nodes must not have it. */
const isRoot = process.getuid?.() === 0;

/** Three private MariaDB nodes, with Galera's own time limits. */
export async function startGalera(flavour: Flavour): Promise<DatabaseCluster> {
  const provider = requireFile({ path: '/usr/lib/galera/libgalera_smm.so', debianPackage: 'galera-4' });
  requireBinary({ names: ['rsync'], debianPackage: 'rsync' });

  const startNode: ClusterKind['startNode'] = async (place, peers) => {
    const { number, directory, socket, url, port } = place;
    if (isRoot) await promisify(execFile)('chown', ['-R', 'mysql', directory]);
    const runAs = isRoot ? ['--user=mysql'] : [];
    const args = [
      ...serverArguments(flavour, { directory, port, runAs }),
      ...(await replicationArguments(place, { provider, peers })),
    ];
    let isNew = number === 1;
    const node = await startPrivateServer({
      name: `Galera node ${number}`,
      url,
      port,
      directory,
      get command() {
        const begin = isNew ? ['--wsrep-new-cluster'] : [];
        isNew = false;
        return { file: flavour.binary, args: [...args, ...begin], env: databaseEnv };
      },
      answers: async () => (await execute({ socket }, 'select 1')).length > 0,
    });
    // The others copy all that the first one has.
    if (number === 1) await execute({ socket }, accountStatements);
    return node;
  };
  return startCluster(flavour, { startNode, inStep });
}

const inStep = (size: number) =>
  `select 1 from information_schema.global_status where variable_name = 'wsrep_cluster_size' and variable_value = ${size}
   and exists (select 1 from information_schema.global_status
     where variable_name = 'wsrep_local_state_comment' and variable_value = 'Synced')`;

async function replicationArguments({ groupPort }: Place, { provider, peers }: { provider: string; peers: string }) {
  // For the changes that a node has missed, and for a copy of everything.
  const [changesPort, copyPort] = [await freePort(), await freePort()];
  const options = [
    `gmcast.listen_addr=tcp://127.0.0.1:${groupPort}`,
    `ist.recv_addr=127.0.0.1:${changesPort}`,
    'gcache.size=32M',
  ];
  return [
    '--binlog-format=ROW',
    '--innodb-autoinc-lock-mode=2',
    '--wsrep-on=ON',
    `--wsrep-provider=${provider}`,
    `--wsrep-provider-options=${options.join(';')}`,
    '--wsrep-cluster-name=rig',
    `--wsrep-cluster-address=gcomm://${peers}`,
    `--wsrep-node-address=127.0.0.1:${groupPort}`,
    '--wsrep-sst-method=rsync',
    `--wsrep-sst-receive-address=127.0.0.1:${copyPort}`,
  ];
}
