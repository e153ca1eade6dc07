import { expect, test } from 'vitest';
import { remainsOf } from '../../rig/observe/remains.ts';
import { until } from '../../rig/until.ts';
import { callerOf } from '../rig/callers.ts';
import { png } from './corpus.ts';
import { imageForm, keyOf, onBothStorages, put, sendForm, uploader } from './storage.ts';

/** The files of a user who deletes the account. */
onBothStorages((uploading) => {
  const call = () => callerOf('rest', uploading().stack.url);

  /** A user with an avatar, a post, a direct upload and an unused URL. */
  const withFiles = async () => {
    const person = await uploader(uploading());
    const image = await png(20, 10);
    const keys: string[] = [];
    for (const type of ['avatar', 'post']) {
      const { body } = await sendForm(uploading(), person.session, imageForm({ bytes: image, type }));
      keys.push(keyOf(body.url));
      if (type === 'avatar') await call()('profile.update', { avatar: body.url }, { session: person.session });
    }
    const file = { filename: 'a.png', contentType: 'image/png', size: image.length };
    for (const isSent of [true, false]) {
      const { data } = await call()('upload.presign', file, { session: person.session });
      if (isSent) await put(data.presignedUrl, image, { 'content-type': 'image/png' });
      keys.push(data.key);
    }
    return { ...person, keys };
  };

  test('files stay until the account is removed, and are then removed', async () => {
    const { stack, objects } = uploading();
    const { id, email, session, keys } = await withFiles();
    const [sent, unused] = [keys.slice(0, 3), keys[3]];
    expect((await call()('account.delete', undefined, { session })).status).toBe(200);
    expect(await Promise.all(sent.map((key) => objects.has(key)))).toEqual([true, true, true]);
    await stack.database('update removals set due_at = 1 where user_id = ?', [id]);
    await until(async () => (await stack.database('select id from users where id = ?', [id])).length === 0);
    await until(async () => (await objects.keys()).every((key) => !sent.includes(key)));
    // A row stays while its URL works, and the removal waits for it.
    expect(await stack.database('select object_key from uploads where user_id = ?', [id])).toEqual(
      expect.arrayContaining([{ object_key: unused }]),
    );
    // Repeated, because a job at work on a row has just postponed it.
    const passTime = async () => {
      await stack.database('update uploads set expires_at = 1, due_at = 1 where user_id = ?', [id]);
      await stack.database('update outbox set created_at = created_at - 3600001 where user_id = ?', [id]);
      await stack.database('update removals set begun_at = begun_at - 600001 where user_id = ?', [id]);
    };
    const isNothingLeft = async () => {
      await passTime();
      return (await remainsOf(stack, [id, email, ...keys])).length === 0;
    };
    await until(isNothingLeft);
  });
});
