import { constants } from 'node:fs';
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { until } from '../until.ts';
import { dataDirectory } from './custodian.ts';
import { databaseAccount, type Flavour, initialData } from './mysql.ts';
import { freePort } from './port.ts';
import type { PrivateServer } from './private-server.ts';

const SIZE = 3;

export interface DatabaseCluster {
  /** All nodes, as in DATABASE_URL; the database does not exist yet. */
  readonly url: string;
  readonly nodes: PrivateServer[];
  /** The node with the most client connections. */
  inUse(): Promise<PrivateServer>;
  /** Resolves once all nodes are in the cluster and in sync. */
  settled(): Promise<void>;
  /** Starts a further node, in the way of this call or else in that of the others. */
  add(startNode?: ClusterKind['startNode']): Promise<PrivateServer>;
  stop(): Promise<void>;
}

/** The resources of one node. */
export interface Place {
  /** 1 starts the cluster. */
  number: number;
  /** Contains the data of a new server. */
  directory: string;
  socket: string;
  port: number;
  url: string;
  /** The port for traffic between nodes. */
  groupPort: number;
}

/** The differences between Galera and Group Replication. */
export interface ClusterKind {
  /** Starts a node and joins it; resolves once it answers. `peers` are the `host:groupPort` of all nodes, comma-separated. */
  startNode(place: Place, peers: string): Promise<PrivateServer>;
  /** A query that has a row if the node is a member of a cluster of `size` nodes. */
  inStep(size: number): string;
}

export async function startCluster(flavour: Flavour, { startNode, inStep }: ClusterKind): Promise<DatabaseCluster> {
  const data = await initialData(flavour);
  const places = await Promise.all(Array.from({ length: SIZE }, (_, i) => placeOf(i + 1, data)));
  const peers = places.map(({ groupPort }) => `127.0.0.1:${groupPort}`).join(',');
  const nodes: PrivateServer[] = [];
  const stop = async () => void (await Promise.all(nodes.map((node) => node.stop())));
  try {
    for (const place of places) nodes.push(await startNode(place, peers));
  } catch (error) {
    await stop();
    throw error;
  }
  const countOf = async (sql: string) =>
    (await Promise.all(nodes.map((node) => execute(node, sql)))).map((rows) => rows.length);
  const { user, password } = databaseAccount;
  return {
    url: `mysql://${user}:${password}@${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    nodes,
    async inUse() {
      const clients = await countOf(`select 1 from information_schema.processlist where user = '${user}'`);
      return nodes[clients.indexOf(Math.max(...clients))] as PrivateServer;
    },
    async settled() {
      await until(async () => (await countOf(inStep(nodes.length))).every((count) => count > 0), {
        within: 90_000,
        every: 200,
        what: `${nodes.length} nodes in step`,
      });
    },
    async add(startAdded = startNode) {
      const node = await startAdded(await placeOf(nodes.length + 1, data), peers);
      nodes.push(node);
      return node;
    },
    stop,
  };
}

async function placeOf(number: number, initial: string): Promise<Place> {
  const directory = dataDirectory('node');
  const data = join(directory, 'data');
  await cp(initial, data, { recursive: true, mode: constants.COPYFILE_FICLONE });
  // The identity of a MySQL server: each needs its own.
  await rm(join(data, 'auto.cnf'), { force: true });
  const [port, groupPort] = [await freePort(), await freePort()];
  const { user, password } = databaseAccount;
  const url = `mysql://${user}:${password}@127.0.0.1:${port}`;
  return { number, directory, socket: join(directory, 'mysqld.sock'), port, url, groupPort };
}

/** By address, or as root by socket. */
export async function execute(at: { url: string } | { socket: string }, sql: string): Promise<RowDataPacket[]> {
  const client = 'url' in at ? { uri: at.url } : { socketPath: at.socket, user: 'root', multipleStatements: true };
  const connection = await createConnection({ ...client, connectTimeout: 2_000 });
  try {
    const [rows] = await connection.query<RowDataPacket[]>(sql);
    return rows;
  } finally {
    // end() would wait for an unresponsive server.
    connection.destroy();
  }
}
