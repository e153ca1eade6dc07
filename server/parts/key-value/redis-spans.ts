import { spansOf } from '../../telemetry/traces.ts';

/** A command as ioredis publishes it, with its keys, which we leave out: a session's is the hash of its token. */
interface Command {
  command: string;
  database: number;
  serverAddress: string;
}

/** Spans of the commands that a request causes, by ioredis itself. */
export const traceCommands = (): void =>
  spansOf<Command>('ioredis:command', ({ command, database, serverAddress }) => {
    const operation = command.toUpperCase();
    return {
      name: operation,
      attributes: {
        'db.system.name': 'redis',
        'db.operation.name': operation,
        'db.namespace': String(database),
        'server.address': serverAddress,
      },
    };
  });
