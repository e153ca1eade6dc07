import { expect, test } from 'vitest';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { countUpTo } from '../../../server/uploads/count.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

test('uploads are counted up to a maximum', async () => {
  const database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('count') });
  try {
    await database.migrate();
    const upload = {
      purpose: 'direct',
      content_type: 'image/png',
      size: 1,
      state: 'stored',
      expires_at: 1,
      created_at: 1,
    };
    const uploads = ['a', 'b', 'c'].map((key) => ({ object_key: key, user_id: 'ada', ...upload }));
    await database.write((tables) =>
      tables
        .insertInto('uploads')
        .values(uploads as never)
        .execute(),
    );
    const count = (most?: number) =>
      database.query((tables) => countUpTo(tables, tables.selectFrom('uploads').where('object_key', '<>', 'b'), most));
    expect([await count(), await count(2), await count(1)]).toEqual([2, 2, 1]);
  } finally {
    await database.close();
  }
});
