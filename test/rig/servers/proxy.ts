import { connect, createServer, type Socket } from 'node:net';
import { PassThrough, pipeline, Transform } from 'node:stream';

export interface Proxy {
  readonly port: number;
  stop(): Promise<void>;
}

export interface SilentProxy extends Proxy {
  /** From now on nothing passes on the connections there are, and none of them ends; new ones work. */
  silence(): void;
}

/** Listens in front of 127.0.0.1:target. `join` passes the bytes of a connection on. */
async function startProxy(target: number, join: (client: Socket, upstream: Socket) => void): Promise<Proxy> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket.setNoDelay(true));
      socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
    }
    join(client, upstream);
  });
  const { promise: listening, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen(0, '127.0.0.1', () => resolve());
  await listening;
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return {
    port: address.port,
    stop() {
      for (const socket of sockets) socket.destroy();
      const { promise, resolve: done } = Promise.withResolvers<void>();
      server.close(() => done());
      return promise;
    },
  };
}

/** Passes bytes on, until its connections are dropped without a word as a failover drops them. */
export async function startSilentProxy(target: number): Promise<SilentProxy> {
  let pairs: [Socket, Socket][] = [];
  const proxy = await startProxy(target, (client, upstream) => {
    pairs.push([client, upstream]);
    client.pipe(upstream).pipe(client);
  });
  return {
    ...proxy,
    silence() {
      for (const [client, upstream] of pairs) {
        client.unpipe(upstream).resume();
        upstream.unpipe(client).resume();
      }
      pairs = [];
    },
  };
}

/** Passes bytes on; each answer arrives `ms` later than it was given. */
export const startSlowProxy = (target: number, ms: number): Promise<Proxy> =>
  startProxy(target, (client, upstream) => {
    pipeline(client, new PassThrough(), upstream, () => client.destroy());
    pipeline(upstream, later(ms), client, () => upstream.destroy());
  });

const later = (ms: number) =>
  new Transform({
    transform(chunk, _encoding, done) {
      setTimeout(() => done(null, chunk), ms);
    },
  });
