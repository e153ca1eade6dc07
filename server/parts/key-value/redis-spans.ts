import type { Redis } from 'ioredis';
import { isTracing, startCall } from '../../telemetry/traces.ts';

/**
 * Spans of the Redis commands of requests, without keys: a session's key is the hash of its token. ioredis' tracing
 * channel is not used: it slows down every command, with or without a span.
 */
export function traceCommands(server: Redis): void {
  if (!isTracing()) return;
  const send = server.sendCommand.bind(server);
  server.sendCommand = (command, stream) => {
    const end = startCall(() => describe(command.name, server));
    if (end) command.promise.then(() => end(), end);
    return send(command, stream);
  };
}

function describe(name: string, { options }: Redis) {
  const operation = name.toUpperCase();
  return {
    name: operation,
    attributes: {
      'db.system.name': 'redis',
      'db.operation.name': operation,
      'db.namespace': String(options.db ?? 0),
      'server.address': options.host ?? '',
      'server.port': options.port,
    },
  };
}
