import { connect, createServer, type Socket } from 'node:net';

export interface SilentProxy {
  readonly port: number;
  /** From now on nothing passes on the connections there are, and none of them ends; new ones work. */
  silence(): void;
  stop(): Promise<void>;
}

/** Passes bytes on to 127.0.0.1:target, until its connections are dropped without a word as a failover drops them. */
export async function startSilentProxy(target: number): Promise<SilentProxy> {
  const sockets = new Set<Socket>();
  let pairs: [Socket, Socket][] = [];
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    pairs.push([client, upstream]);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
    }
    client.pipe(upstream).pipe(client);
  });
  const { promise: listening, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen(0, '127.0.0.1', () => resolve());
  await listening;
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return {
    port: address.port,
    silence() {
      for (const [client, upstream] of pairs) {
        client.unpipe(upstream).resume();
        upstream.unpipe(client).resume();
      }
      pairs = [];
    },
    stop() {
      for (const socket of sockets) socket.destroy();
      const { promise, resolve: done } = Promise.withResolvers<void>();
      server.close(() => done());
      return promise;
    },
  };
}
