import { z } from 'zod';
import { canDecode } from './values.ts';

/** The syntax of REDIS_URL and REDIS_SENTINEL. Each error continues a sentence that begins with the variable's name. */

export interface RedisNode {
  host: string;
  port: number;
}

export interface RedisSentinel {
  nodes: RedisNode[];
  /** The name under which the Sentinels monitor the master. */
  master: string;
  /** The user of the Sentinels, '' without one; the servers' user is in REDIS_URL. */
  username: string;
  password: string;
}

/** Scheme with user and password, hosts, path. A password may contain an @. */
const address = /^(rediss?:\/\/(?:.*@)?)([^/?#]*)(.*)$/i;

/** Undefined if one of the comma-separated hosts is invalid. */
function nodesIn(hosts: string, defaultPort: number): RedisNode[] | undefined {
  const urls = hosts.split(',').map((host) => URL.parse(`redis://${host}`));
  return urls.every((url) => url?.host && url.href === `redis://${url.host}`)
    ? urls.map((url) => ({
        // An IPv6 address has brackets in a URL, but not for a socket.
        host: url?.hostname.replace(/^\[|\]$/g, '') ?? '',
        port: Number(url?.port || defaultPort),
      }))
    : undefined;
}

/** `cluster` has the nodes if there are several; `url` is then that of the first. */
export const redisUrl = z.string().transform((text, { addIssue }) => {
  const [, start = '', hosts = '', path = ''] = address.exec(text) ?? [];
  const [first, ...others] = hosts.split(',');
  const url = `${start}${first}${path}`;
  const cluster = others.length > 0 ? nodesIn(hosts, 6379) : undefined;
  if (!URL.canParse(url) || (others.length > 0 && !cluster)) {
    addIssue('must be an address that starts with redis:// or rediss://, or several hosts: redis://a:6379,b:6379');
  } else if (!canDecode(new URL(url))) {
    addIssue('has a % in user, password or database that is not an escape: write %25');
  } else if (cluster && new URL(url).search) {
    addIssue('must have no parameters: several hosts are a Redis Cluster');
  } else if (cluster && !/^\/?0?$/.test(new URL(url).pathname)) {
    addIssue('must name no database: several hosts are a Redis Cluster, which has only one');
    // ioredis would treat a database that is not a number as 0.
  } else if (!/^(?:\/\d{0,4})?$/.test(new URL(url).pathname)) {
    addIssue('must end with the number of a database, or none');
  }
  return { url, cluster };
});

export const redisSentinel = z.string().transform((text, { addIssue }): RedisSentinel => {
  const [, credentials = '', hosts = '', master = ''] = /^(?:(.*)@)?([^/@]*)\/([\w.-]+)$/.exec(text) ?? [];
  const nodes = nodesIn(hosts, 26379);
  if (!nodes) addIssue('must be the Sentinels and the name of the master: host:26379,host:26379,host:26379/mymaster');
  const login = URL.parse(`redis://${credentials}@host`);
  // A character that is not percent-encoded would end the password early.
  if (login?.host !== 'host' || login.search || login.hash || !canDecode(login)) {
    addIssue('must have user and password percent-encoded, as in an address');
    return z.NEVER;
  }
  const { username, password } = login;
  return {
    nodes: nodes ?? [],
    master,
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
  };
});
