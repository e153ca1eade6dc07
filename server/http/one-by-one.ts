import type { Socket } from 'node:net';
import type { Middleware } from 'koa';

/**
 * Handles the pipelined requests of a connection (RFC 9112 section 9.3.2) one after the other: each begins once the
 * answer to the one before has been sent. Node itself begins all that have arrived, 1200 in a segment of 64 kB, and
 * buffers the answers of a client that reads none.
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
