import { connect, createServer, type Socket } from 'node:net';
import { PassThrough, pipeline, Transform } from 'node:stream';

export interface SlowProxy {
  readonly port: number;
  stop(): Promise<void>;
}

/** Passes bytes on to 127.0.0.1:target; each answer arrives `ms` later than it was given. */
export async function startSlowProxy(target: number, ms: number): Promise<SlowProxy> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1').setNoDelay(true);
    for (const socket of [client.setNoDelay(true), upstream]) {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    }
    pipeline(client, new PassThrough(), upstream, () => client.destroy());
    pipeline(upstream, later(ms), client, () => upstream.destroy());
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

const later = (ms: number) =>
  new Transform({
    transform(chunk, _encoding, done) {
      setTimeout(() => done(null, chunk), ms);
    },
  });
