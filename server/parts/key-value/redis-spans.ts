import type { Redis } from 'ioredis';
import { isTracing, startCall } from '../../telemetry/traces.ts';

/**
 * Spans of the commands that requests send to a server. Their keys are left out: a session's is the hash of its token. Not by
 * ioredis' tracing channel, which costs every command the same, also those of which there is no span.
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
    },
  };
}
