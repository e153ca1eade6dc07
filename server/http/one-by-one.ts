import type { Socket } from 'node:net';
import type { Middleware } from 'koa';

/**
 * The requests of one connection are worked on one after the other, the next once the answer to the last has been taken. Node
 * begins with all that have arrived, 1200 in one segment of 64 kB, and keeps the answers of a client that reads none.
 */
export function oneByOne(): Middleware {
  const last = new WeakMap<Socket, Promise<void>>();
  return async (ctx, next) => {
    const { req, res } = ctx;
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = last.get(req.socket);
    last.set(req.socket, promise);
    await before;
    if (req.socket.destroyed) resolve();
    else {
      res.once('close', () => resolve());
      await next();
    }
  };
}
