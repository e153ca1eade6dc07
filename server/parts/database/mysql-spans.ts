import type { ConnectionOptions } from 'mysql2';
import { schemas } from '../../../entities/index.ts';
import { type EndCall, startCall } from '../../telemetry/traces.ts';

const tables = new Set<string>(schemas.map(({ meta }) => meta.tableName));

const verb = /^\s*(\w+)/;
const afterKeyword = /(?:\bfrom|\binto|^\s*update)\s+`(\w+)`/i;

/** Begins the span of a statement that a request causes. */
export const startStatement = (sql: string, { database, host }: ConnectionOptions): EndCall | undefined =>
  startCall(() => {
    const operation = verb.exec(sql)?.[1]?.toUpperCase() ?? '';
    const table = afterKeyword.exec(sql)?.[1] ?? '';
    // Of our own list: a value may stand in the text of a statement.
    const isTable = tables.has(table);
    return {
      name: isTable ? `${operation} ${table}` : operation,
      attributes: {
        'db.system.name': 'mysql',
        'db.operation.name': operation,
        'db.namespace': database ?? '',
        'server.address': host ?? '',
        ...(isTable && { 'db.collection.name': table }),
      },
    };
  });
