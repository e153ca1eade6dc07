import { randomInt } from 'node:crypto';
import { connect, createServer } from 'node:net';

/**
 * A free TCP port on 127.0.0.1. From below the range that the kernel hands to outgoing connections, so that the port is
 * still free after its server has been down for a while.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const probe = createServer();
  probe.once('error', () => resolve(false));
  probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  return promise;
}

/** Whether something accepts connections at 127.0.0.1:port. */
export function accepts(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, '127.0.0.1');
  socket.once('connect', () => resolve(true));
  socket.once('error', () => resolve(false));
  return promise.finally(() => socket.destroy());
}
