import type { IncomingMessage } from 'node:http';
import type { Middleware } from 'koa';
import { hasBody } from './body.ts';

/** What is read, and thrown away, of a body that was answered without having been read. */
const READ_ON_BYTES = 128 * 1024;
/** How long a sender has to notice his answer. */
const LINGER_MS = 1000;
const LOOK_EVERY_MS = 20;

/**
 * Who is answered before all of his body has come is not listened to for the rest of it. His connection closes, yet only
 * its sending half at once: closed as a whole while he sends, it would often take the answer with it (RFC 9112 section 9.6).
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
  // What Node calls once the answer is written.
  socket.destroySoon = () => {
    socket.end();
    const start = socket.bytesRead;
    const end = performance.now() + LINGER_MS;
    const timer = setInterval(() => {
      if (socket.destroyed) clearInterval(timer);
      else if (performance.now() >= end) socket.destroy();
      else if (socket.bytesRead - start > READ_ON_BYTES) socket.pause();
    }, LOOK_EVERY_MS);
  };
}
