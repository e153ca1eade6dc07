import type { IncomingMessage } from 'node:http';
import type { Middleware } from 'koa';
import { hasBody } from './body.ts';

/** How much is read and discarded of a body after its request was answered. */
const READ_ON_BYTES = 128 * 1024;
/** How long a client has to read the answer. */
const LINGER_MS = 1000;
const CHECK_EVERY_MS = 20;

/**
 * A body is not read to its end once the request has been answered. The connection closes, but at first only in our
 * sending direction: closed as a whole while the client still sends, it would often take the answer with it (RFC 9112
 * section 9.6).
 */
export function unreadBodies(): Middleware {
  return async (ctx, next) => {
    await next();
    const { req } = ctx;
    if (!hasBody(req) || req.complete || req.socket.destroyed) return;
    ctx.set('Connection', 'close');
    lingerAtTheEnd(req);
  };
}

function lingerAtTheEnd({ socket }: IncomingMessage): void {
  // Node calls this once the answer is written.
  socket.destroySoon = () => {
    socket.end();
    const start = socket.bytesRead;
    const end = performance.now() + LINGER_MS;
    const timer = setInterval(() => {
      if (socket.destroyed) clearInterval(timer);
      else if (performance.now() >= end) socket.destroy();
      else if (socket.bytesRead - start > READ_ON_BYTES) socket.pause();
    }, CHECK_EVERY_MS);
  };
}
