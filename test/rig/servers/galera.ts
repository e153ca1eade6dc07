import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type ClusterKind, type DatabaseCluster, execute, type Place, startCluster } from './database-cluster.ts';
import { requireBinary, requireFile } from './debian.ts';
import { accountStatements, databaseEnv, type Flavour, serverArguments } from './mysql.ts';
import { freePort } from './port.ts';
import { type PrivateServer, startPrivateServer } from './private-server.ts';

/** rsync's daemon, which copies a node's data, drops root privileges: so the nodes must run without them. */
const isRoot = process.getuid?.() === 0;

export interface GaleraCluster extends DatabaseCluster {
  /** Starts a further node with a configuration file of its own; resolves once it answers. */
  join(configurationOf: (place: Place, peers: string) => string): Promise<PrivateServer>;
}

/** Three private MariaDB nodes, with Galera's default timeouts. */
export async function startGalera(flavour: Flavour): Promise<GaleraCluster> {
  const provider = await requireFile({ path: '/usr/lib/galera/libgalera_smm.so', debianPackage: 'galera-4' });
  await requireBinary({ names: ['rsync'], debianPackage: 'rsync' });

  const startWith = async (place: Place, options: string[], first = flavour.first) => {
    const { number, directory, socket, url, port } = place;
    if (isRoot) await promisify(execFile)('chown', ['-R', 'mysql', directory]);
    const runAs = isRoot ? ['--user=mysql'] : [];
    const args = [
      ...serverArguments({ ...flavour, first }, { directory, port, runAs }),
      ...(await ownPorts(place)),
      ...options,
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
    // The others copy everything from the first.
    if (number === 1) await execute({ socket }, accountStatements);
    return node;
  };
  const startNode: ClusterKind['startNode'] = (place, peers) =>
    startWith(place, replicationArguments(place, { provider, peers }));
  const cluster = await startCluster(flavour, { startNode, inStep });
  return {
    ...cluster,
    join: (configurationOf) =>
      cluster.add(async (place, peers) => {
        const file = join(place.directory, 'galera.cnf');
        writeFileSync(file, configurationOf(place, peers));
        return startWith(place, [], [`--defaults-file=${file}`]);
      }),
  };
}

const inStep = (size: number) =>
  `select 1 from information_schema.global_status where variable_name = 'wsrep_cluster_size' and variable_value = ${size}
   and exists (select 1 from information_schema.global_status
     where variable_name = 'wsrep_local_state_comment' and variable_value = 'Synced')`;

const replicationArguments = ({ groupPort }: Place, { provider, peers }: { provider: string; peers: string }) => [
  '--binlog-format=ROW',
  '--innodb-autoinc-lock-mode=2',
  '--wsrep-on=ON',
  `--wsrep-provider=${provider}`,
  '--wsrep-cluster-name=accounts',
  `--wsrep-cluster-address=gcomm://${peers}`,
  `--wsrep-node-address=127.0.0.1:${groupPort}`,
  '--wsrep-sst-method=rsync',
];

/** What the nodes of one machine cannot share. */
async function ownPorts({ groupPort }: Place): Promise<string[]> {
  // For the changes that a node has missed, and for a copy of everything.
  const [changesPort, copyPort] = [await freePort(), await freePort()];
  const options = [
    `gmcast.listen_addr=tcp://127.0.0.1:${groupPort}`,
    `ist.recv_addr=127.0.0.1:${changesPort}`,
    'gcache.size=32M',
  ];
  return [`--wsrep-provider-options=${options.join(';')}`, `--wsrep-sst-receive-address=127.0.0.1:${copyPort}`];
}
