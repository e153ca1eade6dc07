import { randomInt } from 'node:crypto';
import { connect, createServer, type ListenOptions } from 'node:net';

/**
 * A free TCP port on 127.0.0.1 that no other caller gets while this process runs: its server starts later, and may stop and
 * start again. Below the kernel's range for outgoing connections.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    if ((await reserve(port)) && (await isFree(port))) return port;
  }
}

/**
 * Reserves a port among all runs on this machine by a socket that has no file (unix(7), abstract): the kernel frees it when
 * this process ends, in whatever way. Linux only.
 */
const reserve = (port: number): Promise<boolean> =>
  process.platform === 'linux'
    ? listens({ path: `\0account-service-tests-${port}` }, { stays: true })
    : Promise.resolve(true);

const isFree = (port: number): Promise<boolean> => listens({ port, host: '127.0.0.1' }, { stays: false });

function listens(address: ListenOptions, { stays }: { stays: boolean }): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const server = createServer().unref();
  server.once('error', () => resolve(false));
  server.listen(address, () => (stays ? resolve(true) : server.close(() => resolve(true))));
  return promise;
}

/** Whether 127.0.0.1:port accepts connections. */
export function accepts(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, '127.0.0.1');
  socket.once('connect', () => resolve(true));
  socket.once('error', () => resolve(false));
  return promise.finally(() => socket.destroy());
}
