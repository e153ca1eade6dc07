/*
 * Node starts every pipelined request as it arrives (1,200 fit into 64 kB) and buffers responses that the client does
 * not read. Requests are therefore handled one by one here.
 */

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { isBroken } from './body.ts';

/** A request of a connection. `answered` resolves when its response has been sent or the connection has closed. */
interface Turn {
  req: IncomingMessage;
  answered: Promise<void>;
}

/**
 * Handles pipelined requests of a connection (RFC 9112 section 9.3.2) in order: each begins after the response to the
 * one before. A request that broke before its turn is not handled.
 */
export function oneByOne(handle: RequestListener) {
  const last = new WeakMap<Socket, Turn>();
  return {
    async handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
      const { promise: answered, resolve } = Promise.withResolvers<void>();
      const before = last.get(req.socket)?.answered;
      last.set(req.socket, { req, answered });
      await before;
      if (req.socket.destroyed || isBroken(req)) return resolve();
      res.once('close', () => resolve());
      handle(req, res);
    },

    /** The newest request of a connection. */
    lastOf: (socket: Socket): Turn | undefined => last.get(socket),
  };
}
