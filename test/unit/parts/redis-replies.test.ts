import { setImmediate as nextTurn } from 'node:timers/promises';
import { Command, type Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { checkReplies } from '../../../server/parts/key-value/redis-replies.ts';

/** A connection to which this test replies. Over the wire: test/faults/redis-replies.test.ts. */
function connection(status = 'ready') {
  const sent: Command[] = [];
  const calls: string[] = [];
  const listeners: ((error: Error) => void)[] = [];
  const stream = {
    writable: true,
    cork: () => calls.push('cork'),
    uncork: () => calls.push('uncork'),
    destroy: () => calls.push('destroy'),
  };
  const server = {
    status,
    stream,
    sendCommand(command: Command) {
      sent.push(command);
      calls.push(command.name);
      return command.promise;
    },
    on: (_event: string, listener: (error: Error) => void) => listeners.push(listener),
  };
  checkReplies(server as unknown as Redis);
  const send = (name: string) => {
    const command = new Command(name, ['key'], { replyEncoding: 'utf8' });
    void server.sendCommand(command);
    return command;
  };
  const fail = (error: Error) => {
    for (const listener of listeners) listener(error);
  };
  return { sent, calls, send, fail };
}

/** The state of a promise so far. */
async function stateOf(promise: Promise<unknown>): Promise<unknown> {
  return Promise.race([promise.catch((error: Error) => error.message), nextTurn('waits')]);
}

/** Errors that would end a process. */
const unhandled = vi.fn();
beforeEach(() => {
  unhandled.mockReset();
  process.on('unhandledRejection', unhandled);
});
afterEach(async () => {
  await nextTurn();
  process.off('unhandledRejection', unhandled);
  expect(unhandled.mock.calls).toEqual([]);
});

test('the commands of a turn are sent together with an ECHO, and wait for its reply', async () => {
  const { sent, calls, send } = connection();
  const [first, second] = [send('get'), send('get')];
  await nextTurn();
  expect(calls).toEqual(['cork', 'get', 'get', 'echo', 'uncork']);
  first.resolve(Buffer.from('a'));
  second.reject(new Error('LOADING'));
  expect([await stateOf(first.promise), await stateOf(second.promise)]).toEqual(['waits', 'waits']);
  sent[2]?.resolve(Buffer.from('1'));
  expect([await stateOf(first.promise), await stateOf(second.promise)]).toEqual(['a', 'LOADING']);

  const next = send('get');
  await nextTurn();
  next.resolve(Buffer.from('b'));
  expect(sent.at(-1)?.args).toEqual(['2']);
  sent.at(-1)?.resolve(Buffer.from('2'));
  expect(await stateOf(next.promise)).toBe('b');
});

test.each(['OK', '0', '2', ''])(
  'any other reply to the ECHO (%s) closes the connection, and no command gets a reply',
  async (reply) => {
    const { sent, calls, send } = connection();
    const [first, second] = [send('get'), send('get')];
    await nextTurn();
    first.resolve(Buffer.from('OK'));
    second.resolve(Buffer.from('a'));
    sent[2]?.resolve(Buffer.from(reply));
    const refused = 'Redis sent a reply that belongs to another command';
    expect([await stateOf(first.promise), await stateOf(second.promise)]).toEqual([refused, refused]);
    expect(calls.at(-1)).toBe('destroy');
  },
);

test('without a reply to the ECHO, no command before it gets one', async () => {
  const { sent, send } = connection();
  const command = send('get');
  await nextTurn();
  command.resolve(Buffer.from('a'));
  sent[1]?.reject(new Error('Connection is closed.'));
  expect(await stateOf(command.promise)).toBe('Connection is closed.');
});

test('a timed-out command may get its reply later', async () => {
  const { sent, send } = connection();
  const command = send('get');
  await nextTurn();
  command.reject(new Error('Command timed out'));
  command.resolve(Buffer.from('a'));
  sent[1]?.resolve(Buffer.from('1'));
  expect(await stateOf(command.promise)).toBe('Command timed out');
});

test('commands that set the connection up are sent unchanged', async () => {
  const { calls, send } = connection('connect');
  const command = send('auth');
  await nextTurn();
  expect(calls).toEqual(['auth']);
  command.resolve(Buffer.from('OK'));
  expect(await stateOf(command.promise)).toBe('OK');
});

test('an unexpected reply closes the connection, another error does not', () => {
  const { calls, fail } = connection();
  fail(new Error('read ECONNRESET'));
  expect(calls).toEqual([]);
  fail(new Error('Command queue state error. If you can reproduce this, please report it. Last reply: OK'));
  expect(calls).toEqual(['destroy']);
});
