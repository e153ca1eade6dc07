import { MikroORM } from '@mikro-orm/sql';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { migrationOptions } from '../../../server/parts/database/options.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';

const NAME = '0007-upload-usage';

describe.each(['embedded', 'real'])('the migration counts what users store, on the %s database', (kind) => {
  let databaseUrl: string | undefined;
  let orm: MikroORM;

  beforeAll(async () => {
    databaseUrl = kind === 'real' ? await createDatabase(inject('mysqlUrl')) : undefined;
    orm = await MikroORM.init(await migrationOptions({ databaseUrl, dataDir: temporaryDirectory('migration') }));
    await orm.migrator.up();
    const row = (key: string, user: string, size: number, state: string) =>
      execute(
        `insert into uploads (object_key, user_id, purpose, content_type, size, state, expires_at, created_at) values ('${key}', '${user}', 'direct', 'image/png', ${size}, '${state}', 1, 1)`,
      );
    await row('uploads/a.png', 'ada', 5_000_000_000, 'kept');
    await row('uploads/b.png', 'ada', 7, 'expected');
    await row('uploads/c.png', 'ada', 100, 'doomed');
    await row('uploads/d.png', 'charles', 1, 'replaced');
  });
  afterAll(async () => {
    await orm.close(true);
    if (databaseUrl) await dropDatabase(databaseUrl);
  });

  const execute = <Row extends object>(sql: string) => orm.em.fork().execute<Row[]>(sql);
  const usage = async () =>
    (
      await execute<{ user_id: string; used: number; files: number }>('select * from upload_usage order by user_id')
    ).map((row) => ({ ...row }));
  const counted = [
    { user_id: 'ada', used: 5_000_000_007, files: 2 },
    { user_id: 'charles', used: 1, files: 1 },
  ];

  test('down and up again', async () => {
    await orm.migrator.down({ migrations: [NAME] });
    await expect(usage()).rejects.toThrow();
    await orm.migrator.up();
    expect(await usage()).toEqual(counted);
  });

  test.each([
    ['the table', [`drop index uploads_of_user${kind === 'real' ? ' on uploads' : ''}`, 'delete from upload_usage']],
    ['the counts', [`drop index uploads_of_user${kind === 'real' ? ' on uploads' : ''}`]],
    ['the index', []],
  ])('again after a crash behind %s', async (_name, undone) => {
    for (const sql of [...undone, `delete from mikro_orm_migrations where name = '${NAME}'`]) await execute(sql);
    await orm.migrator.up();
    expect(await usage()).toEqual(counted);
  });
});
