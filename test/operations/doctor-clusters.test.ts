import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { createConnection } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { slowClock } from '../rig/process/clock.ts';
import { migrate } from '../rig/process/command.ts';
import { type Environment, runDoctor, withChanges } from '../rig/process/doctor.ts';
import { type Authority, createAuthority } from '../rig/servers/certificates.ts';
import { createDatabase, primaryArguments, startMysql, startReplica } from '../rig/servers/mysql.ts';
import { freePort } from '../rig/servers/port.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { startRedis, withClient } from '../rig/servers/redis.ts';
import { type RedisCluster, startRedisCluster } from '../rig/servers/redis-cluster.ts';
import { type RedisSentinels, startRedisSentinels } from '../rig/servers/redis-sentinel.ts';
import { until } from '../rig/until.ts';

/** Parts with several servers. The other parts are embedded. */

/** Planted before the doctor runs; `undo` is called afterwards. */
interface Planted {
  env: Environment;
  undo?: () => Promise<unknown>;
}
type Case = [name: string, plant: () => Promise<Planted> | Planted, ...lines: RegExp[]];

const NOWHERE = '127.0.0.1:9';
const PASSWORD = 'poor-password-1843';

async function diagnose({ env, undo }: Planted) {
  const { code, lines } = await runDoctor({ PORT: String(await freePort()), HOST: '127.0.0.1', ...env }).finally(undo);
  expect(code).toBe(lines.some((line) => line.startsWith('problem ')) ? 1 : 0);
  return lines;
}

/** The findings of one part that are not ok. */
const faultsOf = (part: string, lines: string[]) =>
  lines.filter((line) => !line.startsWith('ok ') && line.includes(part));

const finds = async (plant: Case[1], lines: RegExp[]) => {
  const said = await diagnose(await plant());
  for (const line of lines) expect(said).toContainEqual(expect.stringMatching(line));
};

describe('MySQL', () => {
  let ours: Authority;
  let primary: PrivateServer;
  let replica: PrivateServer;
  /** The database in the primary, in its replica, and an unrelated one of the same name elsewhere. */
  let source: string;
  let copy: string;
  let stranger: string;

  const on = async (server: string, ...statements: string[]) => {
    const connection = await createConnection(server);
    for (const statement of statements) await connection.query(statement);
    connection.destroy();
  };
  const schemaArrived = async () => {
    const connection = await createConnection(copy).catch(() => undefined);
    if (!connection) return false;
    const rows = await connection.query('select 1 from sessions').catch(() => undefined);
    connection.destroy();
    return rows !== undefined;
  };
  /** `url` with several hosts: those of the others, each for another account if there is one. */
  const hosts = (url: string, ...others: string[]) =>
    url.replace(new URL(url).host, [url, ...others].map((address) => new URL(address).host).join(','));

  beforeAll(async () => {
    ours = await createAuthority();
    const { cert, key } = await ours.issue('localhost');
    primary = await startMysql({
      args: [...primaryArguments, `--ssl-ca=${ours.ca}`, `--ssl-cert=${cert}`, `--ssl-key=${key}`],
    });
    replica = await startReplica(primary);
    source = await createDatabase(primary.url);
    copy = withChanges(source, { port: String(replica.port) });
    stranger = withChanges(inject('mysqlUrl'), { pathname: new URL(source).pathname });
    await on(inject('mysqlUrl'), `CREATE DATABASE ${new URL(source).pathname.slice(1)} CHARACTER SET utf8mb4`);
    await migrate({ DATABASE_URL: source });
    await migrate({ DATABASE_URL: stranger });
    await until(schemaArrived, { what: 'the schema in the replica' });
  });
  afterAll(async () => {
    await on(inject('mysqlUrl'), `DROP DATABASE ${new URL(source).pathname.slice(1)}`);
    await Promise.all([primary?.stop(), replica?.stop()]);
  });

  /** An account with these rights on the primary, and so on its replica: its name. */
  const accountWith = async (rights: string) => {
    const name = `doctor_${randomBytes(4).toString('hex')}`;
    const created = `CREATE USER ${name}@'127.0.0.1' IDENTIFIED BY '${PASSWORD}'`;
    await on(source, created, `GRANT ${rights} ON ${new URL(source).pathname.slice(1)}.* TO ${name}@'127.0.0.1'`);
    const isThere = () =>
      on(copy, `SHOW GRANTS FOR ${name}@'127.0.0.1'`).then(
        () => true,
        () => false,
      );
    await until(isThere, { what: 'the account in the replica' });
    return { username: name, password: PASSWORD };
  };

  test('reports a primary and its replica as ok', async () => {
    const lines = await diagnose({ env: { DATABASE_URL: source, DATABASE_REPLICA_URLS: copy } });
    expect(faultsOf('database', lines)).toEqual([]);
    expect(lines).toContainEqual(expect.stringMatching(/^ok database replica 127\.0\.0\.1:\d+: it is 0 s behind/));
  });

  const cases: Case[] = [
    [
      'a host that is down',
      () => ({ env: { DATABASE_URL: hosts(source, `mysql://${NOWHERE}`) } }),
      /^problem database 127\.0\.0\.1:9: the database does not answer .*\. DATABASE_URL must/,
      /^ok database 127\.0\.0\.1:\d+: its schema is up to date/,
    ],
    [
      'a host that is a replica',
      () => ({ env: { DATABASE_URL: hosts(copy, source) } }),
      /^ok database it can be written to at 127\.0\.0\.1:\d+$/,
      /^warning database they are not nodes of one cluster: .*\. Use Galera/,
      /^ok database their clocks agree/,
    ],
    [
      'no host that can be written to',
      () => ({ env: { DATABASE_URL: copy } }),
      /^problem database it cannot be written to \(read_only\)\. DATABASE_URL must/,
    ],
    [
      'two servers by themselves',
      () => ({ env: { DATABASE_URL: hosts(source, stranger) } }),
      /^problem database 127\.0\.0\.1:\d+ has another database than 127\.0\.0\.1:\d+\. DATABASE_URL must/,
      /^problem database .*, .* are written to each by itself.*\. Make them one/,
    ],
    [
      'nodes whose clocks differ',
      async () => {
        // Not executed for accounts with all rights.
        await on(copy, "SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP() - 3'");
        const account = await accountWith('ALL');
        const env = { DATABASE_URL: hosts(withChanges(source, account), copy) };
        return { env, undo: () => on(copy, "SET GLOBAL init_connect = ''") };
      },
      /^problem database more than half a second is between the clocks of .* and .*\. Synchronize/,
    ],
    [
      'an account with few connections',
      async () => {
        const account = await accountWith('ALL');
        await on(source, `ALTER USER ${account.username}@'127.0.0.1' WITH MAX_USER_CONNECTIONS 5`);
        return { env: { DATABASE_URL: withChanges(source, account) } };
      },
      /^problem database it accepts 5 connections, .* may need 10\. Set max_connections/,
    ],
    [
      'a connection that could be read',
      () => ({ env: { DATABASE_URL: withChanges(source, { hostname: '0.0.0.0' }) } }),
      /^warning database the connection is not encrypted\. Add \?ssl-mode=VERIFY_IDENTITY/,
    ],
    [
      'a server that is not verified',
      () => ({ env: { DATABASE_URL: `${source}?ssl-mode=REQUIRED` } }),
      /^warning database any server could impersonate it.*\. Add \?ssl-mode=VERIFY_IDENTITY to DATABASE_URL/,
    ],
    [
      'a server whose authority is not known',
      () => ({ env: { DATABASE_URL: `${source}?ssl-mode=VERIFY_CA` } }),
      /^problem database the database does not answer .*\. CA_FILE must have/,
    ],
    [
      'a server whose authority is known',
      () => ({ env: { DATABASE_URL: `${source}?ssl-mode=VERIFY_CA`, CA_FILE: ours.ca } }),
      /^ok settings CA_FILE has certificates: 1/,
      /^ok database the connection is encrypted \(TLS_/,
    ],
    [
      'an authority whose certificate has expired',
      () => ({ env: { CA_FILE: ours.ca, ...slowClock(-400 * 24 * 3600_000) } }),
      /^warning settings CA_FILE: CN=rig has expired \(.*\. Add the new certificate/,
    ],
    [
      'a replica that is down',
      () => ({ env: { DATABASE_URL: source, DATABASE_REPLICA_URLS: withChanges(copy, { port: '9' }) } }),
      /^problem database replica 127\.0\.0\.1:9: the database does not answer .*\. DATABASE_REPLICA_URLS must/,
      /^ok database its schema is up to date/,
    ],
    [
      'a replica of another database',
      () => ({ env: { DATABASE_URL: source, DATABASE_REPLICA_URLS: stranger } }),
      /^problem database replica .*: it is a copy of another database\. DATABASE_REPLICA_URLS must/,
    ],
    [
      'a replica that its account cannot read',
      async () => {
        const account = await accountWith('INSERT');
        return { env: { DATABASE_URL: source, DATABASE_REPLICA_URLS: withChanges(copy, account) } };
      },
      /^problem database replica .*: its account may not SELECT\. GRANT SELECT ON/,
    ],
    [
      'a replica that stands',
      async () => {
        await on(copy, 'STOP REPLICA');
        const env = { DATABASE_URL: source, DATABASE_REPLICA_URLS: copy };
        return { env, undo: () => on(copy, 'START REPLICA') };
      },
      /^problem database replica .*: its replication stands .*\. SHOW REPLICA STATUS/,
    ],
    [
      'a replica that is behind, by an account that may only read',
      async () => {
        const account = await accountWith('SELECT');
        await on(copy, 'STOP REPLICA');
        const values = ["'user_7'", "'a@example.com'", "'Ada'", "'password'", "'user'", '1', '0', '1'].join();
        const columns = 'id, email, name, provider, role, email_verified, session_epoch, created_at';
        await on(source, `INSERT INTO users (${columns}) VALUES (${values})`);
        const env = { DATABASE_URL: source, DATABASE_REPLICA_URLS: withChanges(copy, account) };
        return { env, undo: () => on(copy, 'START REPLICA').then(() => on(source, 'DELETE FROM users')) };
      },
      /^problem database replica .*: it is more than 10 seconds behind: it lacks a user\. See that/,
    ],
  ];
  test.each(cases)('reports %s, with what to do about it', (_name, plant, ...lines) => finds(plant, lines));
});

describe('a Redis Cluster', () => {
  let cluster: RedisCluster;
  const node = (i: number) => cluster.nodes[i] as PrivateServer;
  const order = (server: PrivateServer, ...command: [string, ...string[]]) =>
    withClient(server.url, (client) => client.call(...command));

  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(() => cluster?.stop());

  test('is reported as ok', async () => {
    const lines = await diagnose({ env: { REDIS_URL: cluster.url } });
    expect(faultsOf('key-value store', lines)).toEqual([]);
    for (const { port } of cluster.nodes) {
      expect(lines).toContainEqual(expect.stringMatching(`^ok key-value store 127.0.0.1:${port}: it evicts nothing`));
    }
  });

  const cases: Case[] = [
    [
      'a host that is down',
      () => ({ env: { REDIS_URL: `${cluster.url},${NOWHERE}` } }),
      /^problem key-value store 127\.0\.0\.1:9: .*ECONNREFUSED.*\. REDIS_URL must name a running server/,
      /^ok key-value store 127\.0\.0\.1:\d+: its Cluster serves all slots, with 3 masters/,
    ],
    [
      'a node that evicts, and is not in REDIS_URL',
      async () => {
        await order(node(5), 'CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
        const undo = () => order(node(5), 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
        return { env: { REDIS_URL: cluster.url.replace(`,127.0.0.1:${node(5).port}`, '') }, undo };
      },
      /^problem key-value store 127\.0\.0\.1:\d+: it may evict .*allkeys-lru\)\. Set maxmemory-policy/,
    ],
    [
      'a node that hangs',
      () => {
        node(5).pause();
        const undo = async () => {
          node(5).resume();
          await cluster.settled();
        };
        return { env: { REDIS_URL: cluster.url }, undo };
      },
      /^problem key-value store 127\.0\.0\.1:\d+: .*\. REDIS_URL must name a running server/,
      /^ok key-value store 127\.0\.0\.1:\d+: it keeps an append-only file/,
    ],
    [
      'slots that no node has',
      async () => {
        const owner = (await cluster.masters())[0] as PrivateServer;
        const ranges = await withClient(owner.url, (client) => client.cluster('SLOTS'));
        const slot = String(ranges.find(([, , master]) => master?.[1] === owner.port)?.[0]);
        await order(owner, 'CLUSTER', 'DELSLOTS', slot);
        return {
          env: { REDIS_URL: cluster.url },
          undo: async () => {
            await order(owner, 'CLUSTER', 'ADDSLOTS', slot);
            await cluster.settled();
          },
        };
      },
      /^problem key-value store .*: its Cluster serves 16383 of 16384 slots \(cluster_state:fail\)\. Run/,
    ],
    [
      'servers that are no Cluster',
      async () => {
        const [one, other] = await Promise.all([startRedis(), startRedis()]);
        const undo = () => Promise.all([one.stop(), other.stop()]);
        return { env: { REDIS_URL: `${one.url},${new URL(other.url).host}` }, undo };
      },
      /^problem key-value store .*: it is not a node of a Cluster\. Several hosts/,
    ],
    [
      'a Cluster by one of its nodes',
      () => ({ env: { REDIS_URL: node(0).url } }),
      /^problem key-value store it is a node of a Cluster\. Name several/,
    ],
    [
      'a node that knows the user, with few rights',
      async () => {
        await order(node(0), 'ACL', 'SETUSER', 'poor', 'on', `>${PASSWORD}`, '~*', '+@all', '-eval');
        const undo = () => order(node(0), 'ACL', 'DELUSER', 'poor');
        return { env: { REDIS_URL: cluster.url.replace('//', `//poor:${PASSWORD}@`) }, undo };
      },
      /^problem key-value store 127\.0\.0\.1:\d+: it refuses EVAL \(NOPERM.*\)\. Allow the user/,
      /^problem key-value store 127\.0\.0\.1:\d+: WRONGPASS.*\. REDIS_URL must name a user/,
    ],
  ];
  test.each(cases)('reports %s, with what to do about it', (_name, plant, ...lines) => finds(plant, lines));
});

describe('Redis Sentinel', () => {
  let rig: RedisSentinels;
  const env = (sentinel = rig.sentinel) => ({ REDIS_URL: rig.url, REDIS_SENTINEL: sentinel });
  const host = (i: number) => new URL((rig.sentinels[i] as PrivateServer).url).host;
  const order = (i: number, ...command: string[]) =>
    withClient((rig.sentinels[i] as PrivateServer).url, (client) => client.call('SENTINEL', ...command));

  const replicaPorts = async (i: number) => {
    const replicas = (await order(i, 'REPLICAS', 'mymaster')) as string[][];
    return replicas.map((facts) => Number(facts[facts.indexOf('port') + 1]));
  };
  const seesMaster = async (i: number) => {
    const facts = (await order(i, 'MASTER', 'mymaster')) as string[];
    return facts[facts.indexOf('flags') + 1] === 'master';
  };
  const knowsAll = async (i: number) => {
    const others = (await order(i, 'SENTINELS', 'mymaster')) as unknown[];
    const replicas = (await replicaPorts(i)).filter((port) => port > 0);
    const isKnown = others.length === rig.sentinels.length - 1 && replicas.length === rig.nodes.length - 1;
    return isKnown && (await seesMaster(i));
  };
  /** In this order: a failover that a test caused leaves the old master without its new one for seconds. */
  const allWell = async () => {
    await until(async () => (await Promise.all([0, 1, 2].map(knowsAll))).every(Boolean), {
      what: 'the Sentinels to know each other, the master and the replicas',
      within: 60_000,
    });
    await rig.settled();
  };

  beforeAll(async () => {
    rig = await startRedisSentinels();
  });
  afterAll(() => rig?.stop());

  test('a replica that has not told its port yet is not taken for a server', async () => {
    const { port } = await rig.master();
    const handshake = connect(port, '127.0.0.1', () => handshake.write('PSYNC ? -1\r\n'));
    handshake.resume();
    try {
      // A Sentinel asks the master every ten seconds.
      await until(async () => (await replicaPorts(0)).includes(0), { what: 'the Sentinel to see the replica' });
    } finally {
      handshake.destroy();
    }
    expect(faultsOf('key-value store', await diagnose({ env: env() }))).toEqual([]);
  });

  test('is reported as ok', async () => {
    const lines = await diagnose({ env: env() });
    expect(faultsOf('key-value store', lines)).toEqual([]);
    const { port } = await rig.master();
    expect(lines).toContainEqual(expect.stringMatching(`^ok key-value store Sentinel .* names 127.0.0.1:${port}`));
    const replicas = rig.nodes.filter((node) => node.port !== port);
    for (const replica of replicas)
      expect(lines).toContainEqual(
        expect.stringMatching(`^ok key-value store replica 127.0.0.1:${replica.port}: it evicts nothing`),
      );
    expect(lines).toContainEqual(
      expect.stringMatching(`^ok key-value store master 127.0.0.1:${port}: it evicts nothing`),
    );
  });

  const cases: Case[] = [
    [
      'a Sentinel that is down',
      () => ({ env: env(rig.sentinel.replace(host(2), NOWHERE)) }),
      /^problem key-value store Sentinel 127\.0\.0\.1:9: .*ECONNREFUSED.*\. REDIS_SENTINEL must name a running/,
      /^ok key-value store master .*: it evicts nothing/,
    ],
    [
      'a wrong name of the master',
      () => ({ env: env(rig.sentinel.replace('mymaster', 'other')) }),
      /^problem key-value store Sentinel .*: it does not monitor a master named other\. REDIS_SENTINEL must end/,
    ],
    [
      'too few Sentinels for a failover',
      async () => {
        const others = rig.sentinels.slice(1);
        for (const sentinel of others) sentinel.pause();
        const isAlone = () =>
          order(0, 'CKQUORUM', 'mymaster').then(
            () => false,
            () => true,
          );
        await until(isAlone, { what: 'the Sentinel to miss the others' });
        const undo = async () => {
          for (const sentinel of others) sentinel.resume();
          await allWell();
        };
        return { env: env(`${host(0)}/mymaster`), undo };
      },
      /^problem key-value store Sentinel .*: NOQUORUM .*\. Restart the other Sentinels/,
      /^warning key-value store REDIS_SENTINEL names 1 of the Sentinels.*\. Name all/,
    ],
    [
      'Sentinels that disagree',
      async () => {
        const { port } = await rig.master();
        const monitor = async (other: string | number) => {
          await order(2, 'REMOVE', 'mymaster');
          // The others forget this one: Sentinels that know each other agree on the master of the latest failover.
          await Promise.all([order(0, 'RESET', 'mymaster'), order(1, 'RESET', 'mymaster')]);
          await order(2, 'MONITOR', 'mymaster', '127.0.0.1', String(other), '2');
        };
        const elsewhere = await startRedis();
        await monitor(elsewhere.port);
        const undo = async () => {
          await Promise.all([monitor(port), elsewhere.stop()]);
          await allWell();
        };
        return { env: env(), undo };
      },
      /^problem key-value store the Sentinels name different masters: 127\.0\.0\.1:\d+, 127\.0\.0\.1:\d+\. Wait/,
    ],
    [
      'a new password that neither replicas nor Sentinels have',
      async () => {
        const inAll = (...command: [string, ...string[]]) =>
          Promise.all(
            rig.nodes.map(({ url }) =>
              withClient(url.replace('//', `//:${PASSWORD}@`), (client) => client.call(...command)),
            ),
          );
        const master = await rig.master();
        const disconnect = (url: string) =>
          withClient(url, async (client) => {
            await client.call('CLIENT', 'KILL', 'TYPE', 'replica');
            await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
          });
        for (const { url } of rig.nodes)
          await withClient(url, (client) => client.config('SET', 'requirepass', PASSWORD));
        // Connections survive a change of their password until the next failover.
        await disconnect(master.url.replace('//', `//:${PASSWORD}@`));
        const isDown = () => order(0, 'MASTER', 'mymaster').then((facts) => String(facts).includes('s_down'));
        await until(isDown, { what: 'the Sentinel to take the master for down' });
        const undo = async () => {
          await inAll('CONFIG', 'SET', 'requirepass', '');
          // A replica whose handshake began before that was refused to tell its port, and would stay without one.
          const disconnectAll = () => Promise.all(rig.nodes.map(({ url }) => disconnect(url)));
          // A Sentinel that begins a failover ends the connections of all clients, also of these.
          await until(disconnectAll, { what: 'the end of all connections' });
          await allWell();
        };
        return { env: { ...env(), REDIS_URL: rig.url.replace('//', `//:${PASSWORD}@`) }, undo };
      },
      /^problem key-value store Sentinel .*: it considers the master unhealthy \(flags .*s_down.*\)\. If the master runs, give/,
      /^problem key-value store replica .*: it does not reach its master: .*\. See its log; .*CONFIG SET masterauth/,
      /^problem key-value store (?:master|replica) .*: its masterauth is not the password of its group.*\. CONFIG SET/,
    ],
    [
      'a replica in sync that has told no port',
      async () => {
        const master = await rig.master();
        const replica = connect(master.port, '127.0.0.1', () => replica.write('PSYNC ? -1\r\n'));
        replica.resume();
        const isInSync = async () => {
          replica.write('REPLCONF ACK 0\r\n');
          return (await withClient(master.url, (client) => client.info('replication'))).includes('port=0,state=online');
        };
        await until(isInSync, { what: 'the replica to be in sync' });
        return { env: env(), undo: async () => replica.destroy() };
      },
      /^warning key-value store master .*: its replica at 127\.0\.0\.1 has told no port.*\. On this master: CLIENT KILL/,
    ],
    [
      'a Sentinel where a server should be',
      () => ({ env: { REDIS_URL: (rig.sentinels[0] as PrivateServer).url } }),
      /^problem key-value store it is a Sentinel\. REDIS_SENTINEL must name it/,
    ],
  ];
  test.each(cases)('reports %s, with what to do about it', (_name, plant, ...lines) => finds(plant, lines));
});
