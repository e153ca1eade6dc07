import type { Socket } from 'node:net';
import type { Middleware } from 'koa';
import { hasBody } from './body.ts';

/** Maximum bytes that are read and discarded of a body after its request was answered. */
const READ_ON_BYTES = 128 * 1024;
/** The time a client has to read the response. */
const LINGER_MS = 1000;
const CHECK_EVERY_MS = 20;

/** Closes the connection of an answered request with an unread body. */
export function unreadBodies(): Middleware {
  return async (ctx, next) => {
    await next();
    const { req } = ctx;
    if (!hasBody(req) || req.complete || req.socket.destroyed) return;
    ctx.set('Connection', 'close');
    // Node calls this after the response is written.
    req.socket.destroySoon = () => closeAndLinger(req.socket);
  };
}

/**
 * Closes only our sending direction first. A full close while the client still sends would often discard the response
 * (RFC 9112 section 9.6).
 */
export function closeAndLinger(socket: Socket): void {
  socket.end();
  const start = socket.bytesRead;
  const end = performance.now() + LINGER_MS;
  const timer = setInterval(() => {
    if (socket.destroyed) clearInterval(timer);
    else if (performance.now() >= end) socket.destroy();
    else if (socket.bytesRead - start > READ_ON_BYTES) socket.pause();
  }, CHECK_EVERY_MS);
}
