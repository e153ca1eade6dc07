import type { Context, Middleware } from 'koa';

/** What is read, and thrown away, of a body that was answered without having been read. */
const READ_ON_BYTES = 128 * 1024;
/** How long a sender has to notice his answer. */
const LINGER_MS = 1000;
const LOOK_EVERY_MS = 20;

/**
 * Who is answered before all of his body has come is not listened to for the rest of it: a little is read, since most bodies
 * end there, then nothing, and soon the connection closes. Closing at once could destroy the answer on its way.
 */
export function unreadBodies(): Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } finally {
      ctx.res.once('finish', () => {
        if (!ctx.req.complete) stopListening(ctx);
      });
    }
  };
}

function stopListening({ req: { socket }, req }: Context): void {
  const start = socket.bytesRead;
  const end = performance.now() + LINGER_MS;
  const timer = setInterval(() => {
    if (req.complete || socket.destroyed) clearInterval(timer);
    else if (performance.now() >= end) socket.destroy();
    else if (socket.bytesRead - start > READ_ON_BYTES) socket.pause();
  }, LOOK_EVERY_MS).unref();
}
