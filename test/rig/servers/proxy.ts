import { connect, createServer, type Socket } from 'node:net';
import { PassThrough, pipeline, Transform } from 'node:stream';

export interface Proxy {
  readonly port: number;
  stop(): Promise<void>;
}

export interface SilentProxy extends Proxy {
  /** From now on the open connections pass nothing and do not end; new ones work. */
  silence(): void;
}

export interface CutProxy extends Proxy {
  /** From now on nothing passes, and nobody is told; what was sent arrives after heal(). */
  cut(): void;
  heal(): void;
}

export interface SurplusProxy extends Proxy {
  /** Inserts bytes before the next bytes of an answer, once; `make` gets these bytes. */
  inject(make: (answer: Buffer) => Buffer): void;
  /** Sends bytes now, on the connection with the last answer. */
  push(bytes: Buffer): void;
}

export interface BreakingProxy extends Proxy {
  /** The bytes that clients have sent, and the connections that were broken. */
  counts(): { sent: number; broken: number };
}

/** Listens in front of 127.0.0.1:target. `join` forwards the bytes of a connection. */
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

/** Forwards bytes until its connections are dropped silently, as in a failover. */
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

/** Forwards bytes, except during a partition. */
export async function startCutProxy(target: number): Promise<CutProxy> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const proxy = await startProxy(target, (client, upstream) => {
    pipeline(client, upstream, () => client.destroy());
    pipeline(upstream, client, () => upstream.destroy());
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
      if (isCut) socket.pause();
    }
  });
  return {
    ...proxy,
    cut() {
      isCut = true;
      for (const socket of sockets) socket.pause();
    },
    heal() {
      isCut = false;
      for (const socket of sockets) socket.resume();
    },
  };
}

/** Forwards bytes, and inserts others on demand. */
export async function startSurplusProxy(target: number): Promise<SurplusProxy> {
  let next: ((answer: Buffer) => Buffer) | undefined;
  let latest: Socket | undefined;
  const proxy = await startProxy(target, (client, upstream) => {
    client.pipe(upstream);
    upstream.on('data', (answer: Buffer) => {
      if (next) client.write(next(answer));
      next = undefined;
      latest = client;
      client.write(answer);
    });
    upstream.once('end', () => client.end());
  });
  return {
    ...proxy,
    inject(make) {
      next = make;
    },
    push: (bytes) => void latest?.write(bytes),
  };
}

/** Forwards bytes; breaks the connection that carries every `every`th byte of the clients. */
export async function startBreakingProxy(target: number, every: number): Promise<BreakingProxy> {
  let [sent, broken] = [0, 0];
  const proxy = await startProxy(target, (client, upstream) => {
    client.on('data', (chunk) => {
      const before = Math.floor(sent / every);
      sent += chunk.length;
      if (Math.floor(sent / every) === before) return;
      broken++;
      for (const socket of [client, upstream]) socket.destroy();
    });
    pipeline(client, upstream, () => client.destroy());
    pipeline(upstream, client, () => upstream.destroy());
  });
  return { ...proxy, counts: () => ({ sent, broken }) };
}

/** Forwards bytes; each answer is delayed by `ms`. */
export const startSlowProxy = (target: number, ms: number): Promise<Proxy> =>
  startProxy(target, (client, upstream) => {
    pipeline(client, new PassThrough(), upstream, () => client.destroy());
    pipeline(upstream, later(ms), client, () => upstream.destroy());
  });

/** Forwards bytes. In those of the client, `from` is replaced by `to`, which must not be longer. */
export const startRewritingProxy = (target: number, { from, to }: { from: string; to: string }): Promise<Proxy> =>
  startProxy(target, (client, upstream) => {
    const rewrite = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        done(null, Buffer.from(chunk.toString('latin1').replaceAll(from, to.padEnd(from.length)), 'latin1'));
      },
    });
    pipeline(client, rewrite, upstream, () => client.destroy());
    pipeline(upstream, client, () => upstream.destroy());
  });

const later = (ms: number) =>
  new Transform({
    transform(chunk, _encoding, done) {
      setTimeout(() => done(null, chunk), ms);
    },
  });
