import { expect, test } from 'vitest';
import { schemas } from '../../../entities/index.ts';
import { storedData, tablesLeftOut } from '../../../server/accounts/data/stored-data.ts';
import { variableNames } from '../../../server/config/index.ts';

/** For every column, the export says whether it contains it, or why not. */

const tables = new Map<string, string[]>(schemas.map(({ meta }) => [meta.tableName, Object.keys(meta.properties)]));
const parts = Object.values(storedData);

test('every table is exported, or omitted with a reason', () => {
  const known = [...parts.map(({ table }) => table), ...Object.keys(tablesLeftOut)];
  expect(known.sort()).toEqual([...tables.keys()].sort());
});

test.each(Object.entries(storedData))('every column of %s is exported, or omitted with a reason', (_name, part) => {
  const known = [...Object.keys(part.exported), ...Object.keys(part.leftOut)];
  expect(known.sort()).toEqual(tables.get(part.table)?.sort());
  expect(tables.get(part.table)).toEqual(expect.arrayContaining([part.user, part.key]));
});

test('every reason is used', () => {
  const reasons = [...parts.flatMap(({ leftOut }) => Object.values(leftOut)), ...Object.values(tablesLeftOut)];
  expect(reasons.filter((reason) => !reason || reason.length < 5)).toEqual([]);
});

test('no secret is exported', () => {
  const exported = parts.flatMap((part) => Object.keys(part.exported));
  expect(exported.filter((field) => /hash|browser$|token|secret/i.test(field))).toEqual([]);
});

test('no password expires: no column and no setting has its age', () => {
  const columns = [...tables].flatMap(([, names]) => names.filter((name) => /password/i.test(name)));
  expect(columns.sort()).toEqual(['passwordBrowser', 'passwordHash', 'passwordProven']);
  const settings = variableNames.filter((name) => /PASSWORD/.test(name));
  expect(settings.sort()).toEqual(['BREACHED_PASSWORDS_FILE', 'PASSWORD_ITERATIONS', 'PASSWORD_STRENGTH']);
});
