import { MikroORM } from '@mikro-orm/sql';
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest';
import { migrationNames as names } from '../../../entities/migrations/index.ts';
import { migrationOptions } from '../../../server/parts/database/options.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';

const NAME = '0006-search';
const before = names[names.indexOf(NAME) - 1] ?? '';

describe.each(['embedded', 'real'])('names get their search keys, on %s parts', (kind) => {
  let dataDir: string;
  let databaseUrl: string | undefined;
  let orm: MikroORM;

  beforeEach(async () => {
    dataDir = temporaryDirectory('migration');
    databaseUrl = kind === 'real' ? await createDatabase(inject('mysqlUrl')) : undefined;
    orm = await MikroORM.init(await migrationOptions({ databaseUrl, dataDir }));
    await orm.migrator.up({ to: before });
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await orm.close(true);
    if (databaseUrl) await dropDatabase(databaseUrl);
  });

  const execute = (sql: string) => orm.em.fork().execute<Record<string, unknown>[]>(sql);
  const add = (from: number, to: number) => {
    const rows = Array.from({ length: to - from }, (_, i) => {
      const n = String(from + i).padStart(4, '0');
      return `('user_${n}', 'ada.${n}@example.test', 'Zoë  Ada ${n}', 'email', 'user', 1, 0, 0, 0)`;
    });
    return execute(
      `insert into users (id, email, name, provider, role, email_verified, session_epoch, created_at, updated_at) values ${rows.join(', ')}`,
    );
  };
  const schema = async () => {
    const inMysql = `select column_name as name from information_schema.columns where table_schema = database() and table_name = 'users'
      union select distinct index_name from information_schema.statistics where table_schema = database() and table_name = 'users'`;
    const inSqlite = "select name from pragma_table_info('users') union select name from pragma_index_list('users')";
    return (await execute(databaseUrl ? inMysql : inSqlite)).map(({ name }) => name).sort();
  };
  const keys = async () => (await execute('select search_name as k from users order by id')).map(({ k }) => k);

  test('in batches, up, down and up again', async () => {
    await add(0, 1200);
    const old = await schema();
    await orm.migrator.up({ to: NAME });
    const expected = Array.from({ length: 1200 }, (_, i) => `zoe ada ${String(i).padStart(4, '0')}`);
    expect(await keys()).toEqual(expected);
    const migrated = await schema();
    expect(migrated).toEqual(expect.arrayContaining(['search_name', 'users_search_name']));
    await orm.migrator.down({ migrations: [NAME] });
    expect(await schema()).toEqual(old);
    await orm.migrator.up({ to: NAME });
    expect(await schema()).toEqual(migrated);
    expect(await keys()).toEqual(expected);
  });

  test('also after an interruption before each of its statements', async () => {
    await add(0, 1200);
    const original = orm.driver.execute.bind(orm.driver);
    let left = 0;
    vi.spyOn(orm.driver, 'execute').mockImplementation((...parameters: Parameters<typeof original>) => {
      if (left-- === 0) throw new Error('interrupted');
      return original(...parameters);
    });
    const attempt = async (statements: number) => {
      left = statements;
      return orm.migrator.up({ to: NAME }).then(
        () => true,
        (error: Error) => {
          expect(error.message).toMatch(/interrupted/);
          return false;
        },
      );
    };
    let statements = 0;
    while (!(await attempt(statements))) statements++;
    expect(statements).toBeGreaterThan(5);
    vi.restoreAllMocks();
    expect(await schema()).toEqual(expect.arrayContaining(['search_name', 'users_search_name']));
    expect(await schema()).not.toContain('users_name');
    expect(new Set(await keys()).size).toBe(1200);
    expect(await keys()).not.toContain(null);
  });
});
