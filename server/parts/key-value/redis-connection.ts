import type { Redis, RedisCommander, RedisOptions } from 'ioredis';
import type { Log } from '../../telemetry/log.ts';
import { isRefused } from '../refusal.ts';
import { checkReplies } from './redis-replies.ts';
import { traceCommands } from './redis-spans.ts';

/** One server, the master that Sentinels name, or a Cluster: the connection behind the store of redis.ts. */
export interface RedisConnection {
  commands: RedisCommander;
  /** Runs a command. Rejects with SERVICE_UNAVAILABLE, within half a second if there is no reply. */
  run<T>(command: () => Promise<T>): Promise<T>;
  /** Like `run`, batched with the other reads of this turn of the event loop. */
  get(key: string): Promise<string | null>;
  ping(): Promise<void>;
  close(): void;
}

/** The maximum time of a command. ioredis' own limit (`commandTimeout`) would also fail commands whose reply waits to be read. */
export const COMMAND_MS = 500;

/** The maximum silence of a server that has accepted a connection. It may be loading its data: then it says so. */
const HANDSHAKE_MS = 1000;

/** By default ioredis waits forever for a server that hangs. With these options the setup of connections times out. */
export const serverOptions = {
  connectTimeout: 1000,
  socketTimeout: 2000,
  disconnectTimeout: 100,
  maxLoadingRetryTime: 500,
  keepAlive: 10_000,
  // A command without a reply may have been executed: resent, it would count a use twice.
  autoResendUnfulfilledCommands: false,
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
} satisfies RedisOptions;

/** Closes a connection that is accepted and then stays silent: the next one may reach a server that responds. */
function limitHandshake(server: Redis): void {
  const { options } = server;
  server.on('connecting', () => Object.assign(options, { socketTimeout: HANDSHAKE_MS }));
  server.on('ready', () => Object.assign(options, { socketTimeout: serverOptions.socketTimeout }));
}

/** For each server, and each node of a cluster, before it connects. */
export function prepareServer(server: Redis): void {
  limitHandshake(server);
  checkReplies(server);
  traceCommands(server);
}

/** Milliseconds until the next attempt to connect; never gives up. */
export const retryDelay = (attempt: number): number => Math.min(50 * attempt, 500);

/** Reports that a server does not respond, or refuses the service. */
export function reportOutage(log: Log, error: unknown, server: string): void {
  if (error instanceof Error && isRefused(error)) {
    log.warn(
      `${server} refuses the connection (${error.message}), it is retried: check user and password in REDIS_URL, or REDIS_SENTINEL`,
    );
  } else log.warn({ err: error }, `${server} does not answer, retrying`);
}
