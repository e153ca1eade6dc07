import { randomUUID } from 'node:crypto';
import { type ClusterKind, type DatabaseCluster, execute, type Place, startCluster } from './database-cluster.ts';
import { accountStatements, databaseAccount, databaseEnv, type Flavour, serverArguments } from './mysql.ts';
import { startPrivateServer } from './private-server.ts';

/** Three private MySQL nodes with Group Replication, like an InnoDB Cluster: one primary, two replicas. */
export async function startGroupReplication(flavour: Flavour): Promise<DatabaseCluster> {
  const group = randomUUID();

  const startNode: ClusterKind['startNode'] = async (place, peers) => {
    const { number, directory, socket, url, port } = place;
    const args = [...serverArguments(flavour, { directory, port }), ...replicationArguments(place, { group, peers })];
    let isNew = true;
    const node = await startPrivateServer({
      name: `MySQL node ${number}`,
      url,
      port,
      directory,
      get command() {
        // Later it rejoins by itself.
        const begin = isNew ? ['--group-replication-start-on-boot=OFF'] : [];
        isNew = false;
        return { file: flavour.binary, args: [...args, ...begin], env: databaseEnv };
      },
      answers: async () => (await execute({ socket }, 'select 1')).length > 0,
    });
    await execute({ socket }, number === 1 ? begin : join);
    return node;
  };
  return startCluster(flavour, { startNode, inStep });
}

/** The account with which a node fetches missed changes from another. */
const recovery = `change replication source to source_user = '${databaseAccount.user}', source_password = '${databaseAccount.password}'
  for channel 'group_replication_recovery';`;
const begin = `${accountStatements} ${recovery}
  set global group_replication_bootstrap_group = on;
  start group_replication;
  set global group_replication_bootstrap_group = off;`;
const join = `${recovery} start group_replication;`;

const inStep = (size: number) =>
  `select 1 from performance_schema.replication_group_members where member_state = 'ONLINE' having count(*) = ${size}`;

const replicationArguments = (
  { number, port, groupPort }: Place,
  { group, peers }: { group: string; peers: string },
) => [
  `--server-id=${number}`,
  '--log-bin',
  '--gtid-mode=ON',
  '--enforce-gtid-consistency=ON',
  '--report-host=127.0.0.1',
  `--report-port=${port}`,
  '--plugin-load-add=group_replication.so',
  `--group-replication-group-name=${group}`,
  `--group-replication-local-address=127.0.0.1:${groupPort}`,
  `--group-replication-group-seeds=${peers}`,
  '--group-replication-recovery-get-public-key=ON',
];
