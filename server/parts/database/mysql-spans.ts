import type { ConnectionOptions } from 'mysql2';
import { schemas } from '../../../entities/index.ts';
import { type EndCall, startCall } from '../../telemetry/traces.ts';

const tables = new Set<string>(schemas.map(({ meta }) => meta.tableName));

const verb = /^\s*(\w+)/;
const afterKeyword = /(?:\bfrom|\binto|^\s*update)\s+`(\w+)`/i;

/** Begins the span of a statement of a request. */
export const startStatement = (sql: string, { database, host, port }: ConnectionOptions): EndCall | undefined =>
  startCall(() => {
    const operation = verb.exec(sql)?.[1]?.toUpperCase() ?? '';
    const table = afterKeyword.exec(sql)?.[1] ?? '';
    // Only known operation names: the text of a statement may contain a value.
    const isTable = tables.has(table);
    return {
      name: isTable ? `${operation} ${table}` : operation,
      attributes: {
        'db.system.name': 'mysql',
        'db.operation.name': operation,
        'db.namespace': database ?? '',
        'server.address': host ?? '',
        'server.port': port,
        ...(isTable && { 'db.collection.name': table }),
      },
    };
  });
