import { randomBytes } from 'node:crypto';
import { MikroORM } from '@mikro-orm/sql';
import { describe, expect, inject, test } from 'vitest';
import { migrationNames } from '../../../entities/migrations/index.ts';
import { PortableMigration } from '../../../entities/migrations/portable.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { pendingMigrations } from '../../../server/parts/database/migration.ts';
import { migrationOptions } from '../../../server/parts/database/options.ts';
import { viewMysql } from '../../rig/observe/database-view.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';

type Sql = (query: string) => Promise<object[]>;

/** Runs on an empty database of each kind. */
function onEachDatabase(title: string, run: (orm: MikroORM, sql: Sql) => Promise<void>): void {
  describe.each(['SQLite', 'MySQL'])('on %s', (kind) => {
    test(title, async () => {
      const dataDir = temporaryDirectory('migrations');
      const databaseUrl = kind === 'MySQL' ? await createDatabase(inject('mysqlUrl')) : undefined;
      const orm = await MikroORM.init(await migrationOptions({ databaseUrl, dataDir }));
      try {
        await run(orm, (query) => orm.em.fork().execute(query));
      } finally {
        await orm.close(true);
        if (databaseUrl) await dropDatabase(databaseUrl);
      }
    });
  });
}

const insertUser = (
  sql: Sql,
  id: string,
  { verified, provider, ...times }: { verified: number; provider: string; updated_at?: number },
) => {
  const password = provider === 'email' ? "'1:x:y'" : 'null';
  const columns = ['id, email, name, provider, role, email_verified, password_hash, session_epoch, created_at'];
  const values = [`'${id}', '${id}@example.test', 'Ada', '${provider}', 'user', ${verified}, ${password}, 0, 1`];
  return sql(
    `insert into users (${[...columns, ...Object.keys(times)]}) values (${[...values, ...Object.values(times)]})`,
  );
};

const insertIdentity = (sql: Sql, userId: string, linkedAt: number) =>
  sql(
    `insert into identities (id, user_id, issuer, subject, created_at) values ('${userId}', '${userId}', 'https://x.test', '${userId}', ${linkedAt})`,
  );

onEachDatabase(
  'what only the owner can have added counts as proven after the upgrade: not an identity that the account was made with',
  async (orm, sql) => {
    const { migrator } = orm;
    await migrator.up({ to: '0003-uploads' });
    await insertUser(sql, 'ada', { verified: 1, provider: 'email', updated_at: 1 });
    await insertUser(sql, 'bob', { verified: 0, provider: 'email', updated_at: 1 });
    await insertUser(sql, 'cyd', { verified: 1, provider: 'github', updated_at: 1 });
    await insertUser(sql, 'dan', { verified: 0, provider: 'github', updated_at: 1 });
    for (const id of ['ada', 'dan']) await insertIdentity(sql, id, 60_000);
    await insertIdentity(sql, 'cyd', 50);
    await migrator.up();
    const upgraded = async () => ({
      passwords: await sql('select id, password_proven from users order by id'),
      identities: await sql('select user_id, proven, provider, browser from identities order by user_id'),
    });
    const expected = {
      passwords: [
        { id: 'ada', password_proven: 1 },
        { id: 'bob', password_proven: 0 },
        { id: 'cyd', password_proven: 0 },
        { id: 'dan', password_proven: 0 },
      ],
      identities: [
        { user_id: 'ada', proven: 1, provider: 'idp', browser: null },
        { user_id: 'cyd', proven: 0, provider: 'github', browser: null },
        { user_id: 'dan', proven: 0, provider: 'github', browser: null },
      ],
    };
    expect(await upgraded()).toEqual(expected);

    // The state after a crash between two statements on MySQL, which commits each separately.
    await sql("delete from mikro_orm_migrations where name = '0004-proven-methods'");
    // A later migration indexes the column: SQLite does not drop one with an index.
    const isSqlite = orm.driver.getPlatform().constructor.name === 'SqlitePlatform';
    if (isSqlite) await sql('drop index identities_browser');
    await sql('alter table identities drop column browser');
    await migrator.up();
    expect(await upgraded()).toEqual(expected);
  },
);

onEachDatabase('every migration can go down and up again', async (orm, sql) => {
  const { migrator } = orm;
  await migrator.up();
  await insertUser(sql, 'ada', { verified: 1, provider: 'email' });
  await migrator.down({ to: '0003-uploads' });
  // As written by the previous release: new columns have defaults.
  await insertUser(sql, 'bob', { verified: 1, provider: 'email', updated_at: 2 });
  expect(await sql('select id, updated_at from users order by id')).toEqual([
    { id: 'ada', updated_at: 1 },
    { id: 'bob', updated_at: 2 },
  ]);
  await migrator.up();
  await expect(sql('select updated_at from users')).rejects.toThrow('updated_at');
  await insertUser(sql, 'cyd', { verified: 1, provider: 'email' });
  expect(await sql('select id from users order by id')).toEqual([{ id: 'ada' }, { id: 'bob' }, { id: 'cyd' }]);
  await migrator.down({ to: 0 });
  await migrator.up();
  expect(await sql('select id from users')).toEqual([]);
});

onEachDatabase(
  'a schema is up to date only with every migration, whatever a newer release has added',
  async (orm, sql) => {
    await orm.connect();
    const pending = () => pendingMigrations(orm.em.fork().getKysely());
    const { migrator } = orm;
    expect(await pending()).toEqual(migrationNames);
    await migrator.up();
    expect(await pending()).toEqual([]);
    await sql("insert into mikro_orm_migrations (name) values ('9999-newer')");
    expect(await pending()).toEqual([]);
    await sql("delete from mikro_orm_migrations where name = '0003-uploads'");
    expect(await pending()).toEqual(['0003-uploads']);
  },
);

/** As sent by a migration. */
const changeTable = (orm: MikroORM, change: string) =>
  new (class extends PortableMigration {
    override up = () => this.alter('users', change);
  })(orm.em.getDriver() as never, orm.config).up();

test('a table is changed online where the server supports it', async () => {
  const databaseUrl = await createDatabase(inject('mysqlUrl'));
  const orm = await MikroORM.init(await migrationOptions({ databaseUrl, dataDir: '' }));
  const sql: Sql = (query) => orm.em.fork().execute(query);
  try {
    await orm.migrator.up();
    await changeTable(orm, 'add column quick int');
    await changeTable(orm, 'add index quick_one (quick)');
    // A change of type rewrites every row, which MySQL and MariaDB cannot do in the requested ways.
    await changeTable(orm, 'modify column quick varchar(20)');
    const [column] = await sql(
      "select data_type as type from information_schema.columns where table_schema = database() and table_name = 'users' and column_name = 'quick'",
    );
    expect(column).toEqual({ type: 'varchar' });
    await expect(changeTable(orm, 'add column quick int')).rejects.toThrow('quick');
  } finally {
    await orm.close(true);
    await dropDatabase(databaseUrl);
  }
});

test('every table has a primary key, which replication needs', async () => {
  const databaseUrl = await createDatabase(inject('mysqlUrl'));
  const database = await openDatabase({ databaseUrl, dataDir: '' });
  const view = viewMysql(databaseUrl);
  try {
    await database.migrate();
    const tables = await view.query<{ name: string; keys: number }>(
      `select table_name as name, (select count(*) from information_schema.table_constraints c
         where c.table_schema = t.table_schema and c.table_name = t.table_name and constraint_type = 'PRIMARY KEY') as \`keys\`
       from information_schema.tables t where table_schema = database()`,
    );
    expect(tables.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['users', 'mikro_orm_migrations', 'migration_lock']),
    );
    expect(tables.filter(({ keys }) => keys !== 1)).toEqual([]);
  } finally {
    await Promise.all([database.close(), view.close()]);
    await dropDatabase(databaseUrl);
  }
});

test('migrating creates a missing database', async () => {
  const url = new URL(inject('mysqlUrl'));
  url.pathname = `/account_${randomBytes(6).toString('hex')}`;
  const database = await openDatabase({ databaseUrl: url.href, dataDir: '' });
  try {
    expect(await database.pendingMigrations()).toEqual(migrationNames);
    expect(await database.migrate()).toEqual(migrationNames);
  } finally {
    await database.close();
    await dropDatabase(url.href);
  }
});

onEachDatabase('`mikro-orm schema:update` proposes no change of a migrated database', async (orm) => {
  await orm.migrator.up();
  const updates = await orm.schema.getUpdateSchemaSQL({ wrap: false, safe: false });
  expect(updates).toBe('');
});
