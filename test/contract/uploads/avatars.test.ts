import { afterAll, expect, test } from 'vitest';
import { environmentFor, startHostileProvider } from '../../provider/hostile.ts';
import { identityClaims, loginsThrough, profileOf } from '../../provider/login.ts';
import { until } from '../../rig/until.ts';
import { callerOf } from '../rig/callers.ts';
import { expectRefusal } from '../rig/scenario.ts';
import { png } from './corpus.ts';
import { onBothStorages, sendImage, uploader } from './storage.ts';

/** With AVATARS=own a profile shows only uploads of this service. */
const provider = await startHostileProvider();
const logInThrough = loginsThrough(provider);
afterAll(() => provider.close());

onBothStorages(
  (uploading) => {
    const call = () => callerOf('rest', uploading().stack.url);

    test('any user’s upload is accepted as avatar, even with a query; "" clears it', async () => {
      const { session } = await uploader(uploading());
      const other = await uploader(uploading());
      const urls = [];
      for (const sender of [session, other.session]) {
        const { body } = await sendImage(uploading(), sender, { bytes: await png(40, 30), type: 'avatar' });
        urls.push(body.url, `${body.url}?v=2`);
      }
      for (const avatar of urls) {
        for (const next of [avatar, avatar, '', avatar, null]) {
          const reply = await call()('profile.update', { avatar: next }, { session });
          expect(reply).toMatchObject({ status: 200, data: { user: { avatar: next ?? '' } } });
        }
      }
    });

    test('an upload in another spelling is stored in that of its URL, and so stays while a profile shows it', async () => {
      const { stack } = uploading();
      const { session } = await uploader(uploading());
      const other = await uploader(uploading());
      const { body } = await sendImage(uploading(), session, { bytes: await png(40, 30), type: 'avatar' });
      await call()('profile.update', { avatar: body.url }, { session });
      const avatar = body.url.replace(/^http:..([^/]+)/, 'HTTP://$1/.').replace('localhost', 'LocalHost');
      const reply = await call()('profile.update', { avatar }, { session: other.session });
      expect(reply).toMatchObject({ status: 200, data: { user: { avatar: body.url } } });
      await call()('profile.update', { avatar: '' }, { session });
      await stack.database("update uploads set due_at = 0 where state = 'replaced'");
      const key = `uploads/${body.url.split('/').at(-1)}`;
      await until(async () => {
        const [row] = await stack.database('select state, due_at from uploads where object_key = ?', [key]);
        return row?.['due_at'] === null && row['state'];
      });
      expect((await fetch(body.url)).status).toBe(200);
    });

    test('any other picture is refused, and the avatar is unchanged', async () => {
      const { session, id } = await uploader(uploading());
      const { body } = await sendImage(uploading(), session, { bytes: await png(40, 30), type: 'avatar' });
      const base = body.url.slice(0, body.url.lastIndexOf('/'));
      await call()('profile.update', { avatar: body.url }, { session });
      const declared = { filename: 'a', contentType: 'image/png', size: 8 };
      const neverSent = await call()('upload.presign', declared, { session });
      const report = await call()('upload.presign', { ...declared, contentType: 'application/pdf' }, { session });
      await uploading().stack.database("update uploads set state = 'kept' where object_key = ?", [report.data.key]);
      for (const avatar of [
        neverSent.data.publicUrl,
        report.data.publicUrl,
        'https://img.example.test/ada.png',
        `${base}/`,
        `${base}/none.png`,
        `${base}/../uploads`,
        body.url.replace('://', '://evil.test/'),
        body.url.replace(/:\/\/[^/:]+/, '$&.evil.test'),
        `https://evil.test/?${body.url}`,
      ]) {
        const reply = await call()('profile.update', { avatar, bio: 'changed' }, { session });
        expectRefusal(reply, 400, 'VALIDATION_FAILED');
        expect(reply.details).toEqual({ avatar: { message: expect.any(String), rule: 'own_upload' } });
      }
      const profile = await call()('profile.get', undefined, { session });
      expect(profile.data.user).toMatchObject({ id, avatar: body.url, bio: '' });
    });

    test('an external avatar from the database can be sent unchanged, but not set again', async () => {
      const { stack } = uploading();
      const { session, id } = await uploader(uploading());
      const avatar = 'https://img.example.test/ada.png';
      await stack.database('update users set avatar = ? where id = ?', [avatar, id]);
      const reply = await call()('profile.update', { avatar, bio: 'changed' }, { session });
      expect(reply).toMatchObject({ status: 200, data: { user: { avatar, bio: 'changed' } } });
      expect((await call()('profile.update', { avatar: '' }, { session })).status).toBe(200);
      expectRefusal(await call()('profile.update', { avatar }, { session }), 400, 'VALIDATION_FAILED');
    });

    test('the picture at a provider is ignored', async () => {
      const { session } = await logInThrough(uploading().stack, identityClaims());
      expect(await profileOf(uploading().stack, session)).toMatchObject({ name: 'Grace Hopper', avatar: '' });
    });
  },
  { AVATARS: 'own', ...environmentFor(provider) },
);
