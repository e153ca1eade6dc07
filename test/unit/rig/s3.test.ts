import { expect, test } from 'vitest';
import { startS3 } from '../../rig/servers/s3.ts';

test('deletions of a folder’s objects at once succeed, and lose no object that is stored meanwhile', async () => {
  const s3 = await startS3({ cors: true });
  try {
    const rounds = Array.from({ length: 30 }, (_, round) => `folder-${round}`);
    for (const folder of rounds) {
      await Promise.all(['a', 'b', 'c'].map((name) => s3.put(`${folder}/${name}`, Buffer.from(name))));
      await Promise.all([
        ...['a', 'b', 'c'].map((name) => s3.remove(`${folder}/${name}`)),
        s3.put(`${folder}/d`, Buffer.from('d')),
      ]);
    }
    expect((await s3.keys()).sort()).toEqual(rounds.map((folder) => `${folder}/d`).sort());
  } finally {
    await s3.stop();
  }
});
