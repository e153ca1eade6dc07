/*
 * Redis replies in the order of the commands and does not name them: one reply too many or too few on the wire would
 * give every later command a wrong reply. Therefore the commands of one turn of the event loop leave in one
 * packet, followed by an ECHO of its own number, and are settled only when that number is back. With any other reply
 * to the ECHO the connection ends and all waiting commands fail as in an outage. Not PING: Redis refuses it while it cannot
 * write to its disk (MISCONF), and reads go on then.
 */

import { Command, type Redis } from 'ioredis';

/**
 * Checks after each batch of commands that replies belong to their commands; a wrong reply to its ECHO ends the
 * connection.
 */
export function checkReplies(server: Redis): void {
  const send = server.sendCommand.bind(server);
  let turns = 0;
  let current: Promise<void> | undefined;

  const startTurn = (): Promise<void> => {
    const { stream } = server;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // If no command gets a reply, this promise has no listener.
    promise.catch(() => undefined);
    stream.cork();
    setImmediate(() => {
      current = undefined;
      const number = String(++turns);
      Promise.resolve(send(new Command('echo', [number], { replyEncoding: 'utf8' }))).then((reply) => {
        if (reply === number) return resolve();
        const error = new Error('Redis sent a reply that belongs to another command');
        reject(error);
        stream.destroy(error);
      }, reject);
      stream.uncork();
    });
    return promise;
  };

  server.sendCommand = (command, stream) => {
    // Earlier commands set up the connection, or wait in ioredis' queue and come here again.
    if (server.status === 'ready' && server.stream.writable) {
      current ??= startTurn();
      settleAfter(current, command);
    }
    return send(command, stream);
  };

  // ioredis only reports a reply without a waiting command, and continues.
  server.on('error', ({ message }: Error) => {
    if (message.startsWith('Command queue state error')) server.stream.destroy();
  });
}

/** Settles a command with its reply or error after `checked` resolves, else with the error of `checked`. */
function settleAfter(checked: Promise<void>, command: Command): void {
  const { resolve, reject } = command;
  // The result is ignored: `resolve` returns the command's promise, which is already rejected after a timeout.
  command.resolve = (reply) => void checked.then(() => void resolve(reply), reject);
  command.reject = (error) => void checked.then(() => reject(error), reject);
}
