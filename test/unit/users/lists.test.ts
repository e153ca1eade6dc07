import { DummyDriver, Kysely, MysqlAdapter, MysqlIntrospector, MysqlQueryCompiler } from 'kysely';
import { expect, test } from 'vitest';
import {
  encodePosition,
  isListCursor,
  type ListRequest,
  listOf,
  rowsOfList,
} from '../../../server/accounts/administration/lists.ts';
import type { Tables } from '../../../server/parts/database/contract.ts';

const tables = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new MysqlAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new MysqlIntrospector(db),
    createQueryCompiler: () => new MysqlQueryCompiler(),
  },
});

/** The conditions and the order of a list, without quotes, with the values in their places. */
function statementOf(request: ListRequest, cursor?: string): string {
  const rows = tables.selectFrom('users').select('id');
  const { sql, parameters } = rowsOfList(rows, listOf(request), cursor).compile();
  let next = 0;
  return sql
    .replaceAll('`', '')
    .replaceAll('?', () => String(parameters[next++]))
    .replace('select id from users ', '');
}

/** Each condition is a stretch of an index; an order by more columns than the index has would sort all users. */
test.each<[ListRequest, cursor: string | undefined, statement: string]>([
  [{}, undefined, 'order by id desc'],
  [{}, 'u', 'where id < u order by id desc'],
  [{ sort: 'created' }, 'u', 'where id > u order by id asc'],
  [{ sort: 'email' }, undefined, 'order by email asc'],
  [{ sort: 'email' }, encodePosition(['a@b', 'u']), 'where email > a@b order by email asc'],
  [{ sort: '-email' }, encodePosition(['a@b', 'u']), 'where email < a@b order by email desc'],
  [{ sort: 'name' }, undefined, 'order by search_name asc, id asc'],
  [
    { sort: 'name' },
    encodePosition(['ada', 'u']),
    'where search_name >= ada and (search_name > ada or (search_name = ada and id > u)) order by search_name asc, id asc',
  ],
  [
    { sort: '-name' },
    encodePosition(['ada', 'u']),
    'where search_name <= ada and (search_name < ada or (search_name = ada and id < u)) order by search_name desc, id desc',
  ],
  [{ standing: 'administrator' }, undefined, 'where role = admin order by id desc'],
  [{ standing: 'unverified' }, 'u', 'where email_verified = 0 and id < u order by id desc'],
  [{ standing: 'blocked' }, undefined, 'where blocked_at is not null order by blocked_at desc, id desc'],
  [
    { standing: 'deleted' },
    encodePosition([7, 'u']),
    'where deleted_at is not null and deleted_at <= 7 and (deleted_at < 7 or (deleted_at = 7 and id < u)) order by deleted_at desc, id desc',
  ],
])('%j after %s is one stretch of an index', (request, cursor, statement) => {
  expect(statementOf(request, cursor)).toBe(statement);
});

test.each<[cursor: string, ListRequest, boolean]>([
  [encodePosition(['ada', 'u']), { sort: 'name' }, true],
  [encodePosition(['é', 'u']), { sort: 'name' }, true],
  [encodePosition(['a@b', 'u']), { sort: 'email' }, true],
  [encodePosition(['é@b', 'u']), { sort: 'email' }, false],
  [encodePosition([7, 'u']), { standing: 'blocked' }, true],
  [encodePosition(['7', 'u']), { standing: 'blocked' }, false],
  [encodePosition([7, 'u']), { sort: 'name' }, false],
  [encodePosition(['ada', 'é']), { sort: 'name' }, false],
  // The same position in another spelling.
  [Buffer.from('["ada", "u"]').toString('base64url'), { sort: 'name' }, false],
  ['not base64', { sort: 'name' }, false],
])('%s is a cursor of %j: %s', (cursor, request, isCursor) => {
  expect(isListCursor(cursor, request)).toBe(isCursor);
});
