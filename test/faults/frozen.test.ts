import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { loggedIn, logIn, onStack } from '../contract/rig/scenario.ts';
import type { Stack } from '../rig/stack.ts';

/** Enough reads that the abandoned call would run before the last. */
const READS = 20;

/** Real parts only: SQLite answers a session check before Node sees the end of the connection. */
const start = (stack: () => Stack) =>
  test('a frozen process skips requests abandoned meanwhile', async () => {
    const [service] = stack().services;
    if (!service) throw new Error('no service');
    const call = callerOf('rest', service.url);
    const person = await loggedIn({ stack: stack(), call });
    const other = await logIn(call, person);
    const { data } = await call('sessions.list', undefined, { session: other });
    const { id } = data.data.find(({ current }: { current: boolean }) => !current);
    service.signal('SIGSTOP');
    const socket = connect(service.port, '127.0.0.1');
    await once(socket, 'connect');
    const headers = `Host: x\r\nCookie: auth_session=${other}\r\nOrigin: ${service.url}`;
    await new Promise((sent) => socket.write(`DELETE /api/sessions/${id} HTTP/1.1\r\n${headers}\r\n\r\n`, sent));
    // HAProxy resets connections that wait for a server that is down.
    socket.resetAndDestroy();
    service.signal('SIGCONT');
    const statuses = [];
    for (let n = 0; n < READS; n++) {
      const { status } = await call('profile.get', undefined, { session: person.session });
      statuses.push(status);
    }
    expect(new Set(statuses)).toEqual(new Set([200]));
    // The same call from a caller that waits.
    expect((await call('sessions.end', { id }, { session: other })).status).toBe(200);
    expect((await call('profile.get', undefined, { session: person.session })).status).toBe(401);
  });

onStack('real', start, { inProcess: false });
