import type { Redis, RedisCommander, RedisOptions } from 'ioredis';
import type { Log } from '../../log.ts';
import { isRefused } from '../refusal.ts';

/** One server, the master that Sentinels name, or a Cluster: what the store of redis.ts is made of. */
export interface RedisConnection {
  commands: RedisCommander;
  /** Runs a command. Rejects with SERVICE_UNAVAILABLE, within half a second where there is no answer. */
  run<T>(command: () => Promise<T>): Promise<T>;
  /** Like `run`, together with what else is read in this turn of the event loop. */
  get(key: string): Promise<string | null>;
  ping(): Promise<void>;
  close(): void;
}

/** The longest that a command may take. */
export const COMMAND_MS = 500;

/**
 * ioredis waits for ever by default on a server that hangs; with these a command fails in time, and so do the steps that
 * make a connection usable.
 */
export const serverOptions = {
  connectTimeout: 1000,
  commandTimeout: COMMAND_MS,
  socketTimeout: 2000,
  disconnectTimeout: 100,
  maxLoadingRetryTime: 500,
  keepAlive: 10_000,
  // A command without an answer may have been executed: sent again, it would count a use twice.
  autoResendUnfulfilledCommands: false,
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
} satisfies RedisOptions;

/** Milliseconds until the next attempt to connect. There is always one. */
export const retryDelay = (attempt: number): number => Math.min(50 * attempt, 500);

/** Answers a function that sends what this turn of the event loop writes in one packet to each of the servers. */
export function corking(servers: () => readonly Redis[]): () => void {
  let isCorked = false;
  return () => {
    if (isCorked) return;
    isCorked = true;
    const sockets = servers().map(({ stream }) => stream);
    for (const socket of sockets) socket?.cork();
    setImmediate(() => {
      isCorked = false;
      for (const socket of sockets) socket?.uncork();
    });
  };
}

/** Reports that a server does not answer, or refuses us. */
export function reportOutage(log: Log, error: unknown, server: string): void {
  if (error instanceof Error && isRefused(error)) {
    log.warn(
      `${server} refuses us (${error.message}), it is retried: check user and password in REDIS_URL, or REDIS_SENTINEL`,
    );
  } else log.warn({ err: error }, `${server} does not answer, it is retried`);
}
