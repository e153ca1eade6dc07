import { schemas } from '../../../entities/index.ts';
import { spansOf } from '../../telemetry/traces.ts';

/** A statement as mysql2 publishes it: with its values in the text. */
interface Statement {
  query: string;
  database: string;
  serverAddress: string;
}

const tables = new Set<string>(schemas.map(({ meta }) => meta.tableName));

const verb = /^\s*(\w+)/;
const afterKeyword = /(?:\bfrom|\binto|^\s*update)\s+`(\w+)`/i;

/** Spans of the statements that a request causes, by mysql2 itself. */
export const traceStatements = (): void =>
  spansOf<Statement>('mysql2:query', ({ query, database, serverAddress }) => {
    const operation = verb.exec(query)?.[1]?.toUpperCase() ?? '';
    const table = afterKeyword.exec(query)?.[1] ?? '';
    // Of our own list: whatever else stands in the text may be a user's.
    const isTable = tables.has(table);
    return {
      name: isTable ? `${operation} ${table}` : operation,
      attributes: {
        'db.system.name': 'mysql',
        'db.operation.name': operation,
        'db.namespace': database,
        'server.address': serverAddress,
        ...(isTable && { 'db.collection.name': table }),
      },
    };
  });
