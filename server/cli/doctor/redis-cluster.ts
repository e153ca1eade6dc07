import type { Redis } from 'ioredis';
import type { RedisNode } from '../../config/index.ts';
import { examineServers } from './examination.ts';
import { type Finding, ok, problem } from './finding.ts';
import { addressOf, factsIn, nameOf, serverFindings, withServer } from './redis-server.ts';

const SLOTS = 16_384;

/** `nodes` are those in REDIS_URL; any of them leads to the others. */
export async function* clusterFindings(url: string, nodes: RedisNode[]): AsyncGenerator<Finding> {
  const views: View[] = [];
  const ask = (node: RedisNode) =>
    withServer({ url: addressOf(url, node), variable: 'REDIS_URL' }, async function* (redis) {
      const view = await viewOf(redis);
      if (view) views.push(view);
      yield view
        ? stateFinding(view)
        : problem('it is not a node of a Cluster', 'several hosts in REDIS_URL must be the nodes of one Cluster');
    });
  yield* examineServers(nodes.map((node) => [nameOf(node), ask(node)]));

  const known = new Map(views.flatMap((view) => view.nodes).map((node) => [nameOf(node), node]));
  yield* examineServers(
    [...known].map(([name, node]) => [
      name,
      withServer({ url: addressOf(url, node), variable: 'REDIS_URL' }, (redis) =>
        serverFindings(redis, { node: true }),
      ),
    ]),
  );
}

/** The Cluster as one of its nodes sees it. */
interface View {
  facts: Record<string, string>;
  nodes: RedisNode[];
}

async function viewOf(redis: Redis): Promise<View | undefined> {
  if (factsIn(await redis.info('cluster'))['cluster_enabled'] !== '1') return undefined;
  const [facts, list] = await Promise.all([redis.cluster('INFO'), redis.cluster('NODES')]);
  return { facts: factsIn(facts), nodes: String(list).split('\n').flatMap(nodeIn) };
}

/** Parses `id host:port@busPort,hostname flags …`. Skips nodes with an unknown address. */
function nodeIn(line: string): RedisNode[] {
  const [, ip = '', port = '', hostname, flags = ''] = /^\S+ (\S*):(\d+)@\d+(?:,([^\s,]*)\S*)? (\S+) /.exec(line) ?? [];
  return port === '' || flags.includes('noaddr') ? [] : [{ host: hostname || ip, port: Number(port) }];
}

function stateFinding({ facts }: View): Finding {
  const served = Number(facts['cluster_slots_ok']);
  return facts['cluster_state'] === 'ok' && served === SLOTS
    ? ok(`its Cluster serves all slots, with ${facts['cluster_size']} masters`)
    : problem(
        `its Cluster serves ${served} of ${SLOTS} slots (cluster_state:${facts['cluster_state']})`,
        'run `redis-cli --cluster check`, then `--cluster fix`, on one of its nodes',
      );
}
