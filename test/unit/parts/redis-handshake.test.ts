import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { connectToCluster } from '../../../server/parts/key-value/redis-cluster.ts';
import type { RedisConnection } from '../../../server/parts/key-value/redis-connection.ts';
import { connectToServer } from '../../../server/parts/key-value/redis-server.ts';
import { until } from '../../rig/until.ts';

const log = pino({ level: 'silent' });
const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`;

/** A Redis, and a Cluster of one node, that accepts its first connection of HELLO and stays silent in it. */
async function silentAtFirst() {
  const hellos: number[] = [];
  const reply = (port: number, [name = '', ...words]: string[]): string => {
    if (name === 'hello') return '%1\r\n$5\r\nproto\r\n:3\r\n';
    if (name === 'info') return bulk('redis_version:7.4.0\r\nloading:0');
    if (name === 'cluster') return `*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n${bulk('127.0.0.1')}:${port}\r\n`;
    if (name === 'echo') return bulk(words[0] ?? '');
    if (name === 'get') return bulk('value');
    if (name === 'mget') return `*1\r\n${bulk('value')}`;
    return '+OK\r\n';
  };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let isSilent = false;
    socket
      .on('error', () => undefined)
      .on('data', (data) => {
        const { port } = server.address() as AddressInfo;
        for (const command of data
          .toString()
          .split(/^\*\d+\r\n/m)
          .slice(1)) {
          const words = command.split('\r\n').filter((_, line) => line % 2 === 1);
          if (words[0] === 'hello' && hellos.push(performance.now()) === 1) isSilent = true;
          if (!isSilent) socket.write(reply(port, words));
        }
      });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { hellos, port: (server.address() as AddressInfo).port };
}

test.each<[string, (port: number) => RedisConnection]>([
  ['a server', (port) => connectToServer({ url: `redis://127.0.0.1:${port}` }, log)],
  [
    'a node of a Cluster',
    (port) => connectToCluster({ url: 'redis://127.0.0.1', nodes: [{ host: '127.0.0.1', port }] }, log),
  ],
])('%s that accepts a connection and stays silent is connected to again after a second', async (_what, connect) => {
  const { hellos, port } = await silentAtFirst();
  const { get, close } = connect(port);
  onTestFinished(close);
  expect(await until(() => get('key'))).toBe('value');
  const [first = 0, second = Infinity] = hellos;
  expect(second - first).toBeLessThan(1900);
});
