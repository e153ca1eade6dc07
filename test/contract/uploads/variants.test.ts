import sharp from 'sharp';
import { thumbHashToApproximateAspectRatio, thumbHashToRGBA } from 'thumbhash';
import { beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../rig/until.ts';
import { callerOf } from '../rig/callers.ts';
import { photograph, png } from './corpus.ts';
import {
  keyOf,
  onBothStorages,
  onStorage,
  reachable,
  type SentImage,
  sendImage,
  surfacesOf,
  type Uploading,
  uploader,
} from './storage.ts';

/** Smaller pictures of images: IMAGE_SIZES. */

const DEFAULT_SIZES = { avatar: [64, 256], post: [320, 640, 1280] };

interface Variant {
  width: number;
  height: number;
  url: string;
  bytes: number;
}

const nameOf = (url: string) => keyOf(url).replace('uploads/', '');

const withWidth = (url: string, width: number) => url.replace('.webp', `_${width}.webp`);

const keysOf = ({ url, variants }: { url: string; variants: Variant[] }) =>
  [url, ...variants.map((each) => each.url)].map(keyOf);

async function images(uploading: Uploading, surface: 'rest' | 'trpc' = 'rest') {
  const person = await uploader(uploading);
  const { session } = person;
  const call = callerOf(surface, uploading.stack.url);
  return {
    ...person,
    call,
    async send(image: Partial<SentImage> = {}) {
      const { status, body } = await sendImage(uploading, session, { bytes: await png(1600, 1200), ...image });
      expect({ status, body }).toMatchObject({ status: 200 });
      return body;
    },
    list: async () => (await call('upload.list', {}, { session })).data.data,
    remove: (url: string) => call('upload.remove', { name: nameOf(url) }, { session }),
    used: async () => (await call('upload.usage', undefined, { session })).data,
    wear: (avatar: string) => call('profile.update', { avatar }, { session }),
    profile: async () => (await call('profile.get', undefined, { session })).data.user,
  };
}

/** The listed row, without images that have no description yet. */
const described = async ({ stack }: Uploading, key: string) =>
  (
    await stack.database<{ variants: string | null; variants_for: string | null; variants_until: number | null }>(
      'select variants, variants_for, variants_until from uploads where object_key = ?',
      [key],
    )
  )[0];

const besides = async ({ stack }: Uploading, key: string) =>
  (
    await stack.database<{ object_key: string }>(
      'select object_key from upload_variants where upload_key = ? order by object_key',
      [key],
    )
  ).map((row) => row.object_key);

onBothStorages((uploading, storage) => {
  describe.each(surfacesOf(storage))('over %s', (surface) => {
    // checks: 64
    test.each([
      ['avatar', 900, 700, [64, 256]],
      ['avatar', 20, 10, [64, 256]],
      ['post', 4000, 3000, [320, 640, 1280]],
      ['post', 1280, 100, [320, 640]],
      ['post', 1281, 100, [320, 640, 1280]],
      ['post', 1000, 4000, [320]],
      ['post', 320, 320, []],
    ] as const)('%s of %i×%i: %j, each as described', async (type, width, height, widths) => {
      const { send, list, used } = await images(uploading(), surface);
      const body = await send({ bytes: await png(width, height), type });
      expect(body.variants.map((each: Variant) => each.width)).toEqual(widths);
      for (const variant of body.variants as Variant[]) {
        expect(variant.url).toBe(withWidth(body.url, variant.width));
        expect(Math.abs(variant.height - (variant.width * body.height) / body.width)).toBeLessThanOrEqual(1);
        const response = await fetch(reachable(variant.url));
        const bytes = Buffer.from(await response.arrayBuffer());
        const { format, exif } = await sharp(bytes).metadata();
        expect({
          status: response.status,
          type: response.headers.get('content-type'),
          caching: response.headers.get('cache-control'),
        }).toEqual({ status: 200, type: 'image/webp', caching: 'public, max-age=31536000, immutable' });
        expect([format, exif, bytes.length]).toEqual(['webp', undefined, variant.bytes]);
        expect(await sharp(bytes).metadata()).toMatchObject({ width: variant.width, height: variant.height });
      }
      const { url, variants, placeholder } = body;
      expect(await list()).toMatchObject([
        { url, size: body.size, width: body.width, height: body.height, variants, placeholder },
      ]);
      const bytes = (variants as Variant[]).reduce((sum, variant) => sum + variant.bytes, body.size);
      expect(await used()).toMatchObject({ used: bytes, files: 1 });
    });

    test('the placeholder is a ThumbHash of the image, in at most 30 bytes', async () => {
      const { send } = await images(uploading(), surface);
      for (const [width, height] of [
        [600, 600],
        [900, 300],
        [40, 300],
      ] as const) {
        const { placeholder } = await send({
          bytes: await sharp(await png(width, height))
            .tint('#d02020')
            .png()
            .toBuffer(),
        });
        const hash = Buffer.from(placeholder, 'base64');
        expect(hash.length).toBeLessThanOrEqual(30);
        const ratio = width / height;
        expect(thumbHashToApproximateAspectRatio(hash) / ratio).toBeGreaterThan(0.5);
        expect(thumbHashToApproximateAspectRatio(hash) / ratio).toBeLessThan(2);
        const { rgba } = thumbHashToRGBA(hash);
        expect(rgba[3]).toBe(255);
        expect(rgba[0]).toBeGreaterThan((rgba[2] ?? 255) + 30);
      }
    });

    test('a transparent, grey or 16 bit image has variants and a placeholder', async () => {
      const { send } = await images(uploading(), surface);
      const clear = await sharp({ create: { width: 700, height: 500, channels: 4, background: '#ff000040' } })
        .png()
        .toBuffer();
      const grey = await sharp(await png(700, 500))
        .toColourspace('b-w')
        .png()
        .toBuffer();
      const deep = await sharp(await png(700, 500))
        .toColourspace('rgb16')
        .png()
        .toBuffer();
      for (const bytes of [clear, grey, deep]) {
        const { variants, placeholder } = await send({ bytes });
        expect(variants.map((each: Variant) => each.width)).toEqual([320, 640]);
        const { rgba } = thumbHashToRGBA(Buffer.from(placeholder, 'base64'));
        expect((rgba[3] ?? 0) < 200).toBe(bytes === clear);
        const small = await sharp(await uploading().objects.read(keyOf(variants[0].url))).metadata();
        expect(small.hasAlpha).toBe(bytes === clear);
      }
    });

    test('a deletion removes all objects and frees all bytes', async () => {
      const { send, remove, used } = await images(uploading(), surface);
      const body = await send();
      for (const key of keysOf(body)) expect(await uploading().objects.has(key)).toBe(true);
      expect((await remove(body.url)).status).toBe(200);
      for (const key of keysOf(body)) expect([key, await uploading().objects.has(key)]).toEqual([key, false]);
      expect(await used()).toMatchObject({ used: 0, files: 0 });
      expect([await described(uploading(), keyOf(body.url)), await besides(uploading(), keyOf(body.url))]).toEqual([
        undefined,
        [],
      ]);
    });

    test('a variant cannot be deleted alone, nor an image of another user', async () => {
      const [owner, other] = await Promise.all([images(uploading(), surface), images(uploading(), surface)]);
      const body = await owner.send();
      expect(await owner.remove(body.variants[0].url)).toMatchObject({ status: 404, code: 'NOT_FOUND' });
      expect(await other.remove(body.url)).toMatchObject({ status: 404, code: 'NOT_FOUND' });
      expect(await other.list()).toEqual([]);
      for (const key of keysOf(body)) expect(await uploading().objects.has(key)).toBe(true);
    });

    test('the export names every picture', async () => {
      const { send, call, session } = await images(uploading(), surface);
      const { url, size, width, height, variants, placeholder } = await send();
      const { data } = await call('account.export', undefined, { session });
      expect(data.uploads).toMatchObject([{ url, size, width, height, placeholder, variants }]);
    });

    test('the own profile has the variants of an avatar that was uploaded here, and nothing else has them', async () => {
      const { id, session, call, send, wear, profile, remove } = await images(uploading(), surface);
      expect(await profile()).not.toHaveProperty('avatarVariants');
      const { url, variants } = await send({ type: 'avatar' });
      for (const avatar of [url, `${url}?v=2`, variants[0].url]) {
        expect((await wear(avatar)).data.user).toMatchObject({ avatar, avatarVariants: variants });
        expect(await profile()).toMatchObject({ avatar, avatarVariants: variants });
      }
      for (const reply of [await call('users.get', { id }, { session }), await call('users.list', {}, { session })])
        expect(JSON.stringify(reply.data)).not.toContain('avatarVariants');
      expect((await wear('https://pictures.test/ada.png')).data.user).not.toHaveProperty('avatarVariants');
      await wear(url);
      expect((await remove(url)).status).toBe(200);
      expect(await profile()).not.toHaveProperty('avatarVariants');
    });
  });

  test('an avatar at the URL of its variant is not deleted as unused', async () => {
    const { send, wear } = await images(uploading());
    const { url, variants } = await send({ type: 'avatar' });
    await wear(url);
    await wear(variants[1].url);
    const row = async () =>
      (
        await uploading().stack.database<{ state: string; due_at: number | null }>(
          'select state, due_at from uploads where object_key = ?',
          [keyOf(url)],
        )
      )[0];
    expect(await row()).toEqual({ state: 'kept', due_at: null });
  });

  test('a profile that shows the image of another user has its variants until that is deleted', async () => {
    const [owner, other] = [await images(uploading()), await images(uploading())];
    const { url, variants } = await owner.send({ type: 'avatar' });
    expect((await other.wear(`${url}?v=1`)).data.user).toMatchObject({ avatarVariants: variants });
    const hidden = await owner.send({ type: 'avatar', visibility: 'private' });
    expect(hidden.url).toBe('');
    const [{ name }] = await owner.list();
    expect((await owner.call('upload.remove', { name }, { session: owner.session })).status).toBe(200);
    expect(await other.profile()).toMatchObject({ avatarVariants: variants });
    expect((await owner.remove(url)).status).toBe(200);
    expect(await other.profile()).toMatchObject({ avatar: `${url}?v=1` });
    expect(await other.profile()).not.toHaveProperty('avatarVariants');
  });

  test('the removal of an account deletes the variants', async () => {
    const { id, session, call, send } = await images(uploading());
    const bodies = [await send(), await send({ type: 'avatar' })];
    const other = await images(uploading());
    await other.wear(bodies[1].url);
    expect(await other.profile()).toHaveProperty('avatarVariants');
    await call('account.delete', undefined, { session });
    await uploading().stack.database('update removals set due_at = 1 where user_id = ?', [id]);
    await until(async () => {
      // Repeated, because a job at work on a row has just postponed it.
      await uploading().stack.database('update uploads set expires_at = 1, due_at = 1 where user_id = ?', [id]);
      return (await uploading().stack.database('select 1 from uploads where user_id = ?', [id])).length === 0;
    });
    const left = await uploading().objects.keys();
    expect(bodies.flatMap(keysOf).filter((key) => left.includes(key))).toEqual([]);
    expect(await besides(uploading(), keyOf(bodies[0].url))).toEqual([]);
    expect(await other.profile()).not.toHaveProperty('avatarVariants');
  });

  /** As left by a process that was killed after the reservation, with only some of the objects. */
  test.each([0, 1, 2])('of an image whose storing ended after %i objects nothing stays', async (stored) => {
    const { id, send, used } = await images(uploading());
    const body = await send();
    const key = keyOf(body.url);
    const { database } = uploading().stack;
    const service = uploading().stack.services[0];
    expect(service).toBeDefined();
    const gone = keysOf(body).slice(stored);
    await deleteObjects(uploading(), gone);
    await database("update uploads set state = 'expected', expires_at = 1, due_at = 1 where object_key = ?", [key]);
    await until(async () => (await database('select 1 from uploads where user_id = ?', [id])).length === 0);
    for (const each of keysOf(body)) expect(await uploading().objects.has(each)).toBe(false);
    expect(await besides(uploading(), key)).toEqual([]);
    expect(await used()).toMatchObject({ used: 0, files: 0 });
  });

  test('the row of a deleted image stays while a process may store variants of it', async () => {
    const { send, remove, used } = await images(uploading());
    const body = await send();
    const key = keyOf(body.url);
    const { database } = uploading().stack;
    await database('update uploads set variants_until = ? where object_key = ?', [Date.now() + 3_600_000, key]);
    expect((await remove(body.url)).status).toBe(200);
    expect(await used()).toMatchObject({ used: 0, files: 0 });
    expect(await described(uploading(), key)).toBeDefined();
    // What that process still stores is deleted at the end of its lease.
    await uploading().objects.put(keyOf(body.variants[0].url), Buffer.from('late'));
    await database('update uploads set variants_until = 1, expires_at = 1, due_at = 1 where object_key = ?', [key]);
    await until(async () => (await described(uploading(), key)) === undefined);
    expect(await uploading().objects.has(keyOf(body.variants[0].url))).toBe(false);
  });
});

const deleteObjects = async ({ objects }: Uploading, keys: string[]) => {
  for (const key of keys) await objects.remove(key);
};

/** Images as an earlier version stored them: without variants. */
const age = async (uploading: Uploading, body: { url: string; variants: Variant[] }) => {
  const key = keyOf(body.url);
  const { database } = uploading.stack;
  await deleteObjects(uploading, keysOf(body).slice(1));
  await database('delete from upload_variants where upload_key = ?', [key]);
  await database('update upload_usage set used = used - (select variants_size from uploads where object_key = ?)', [
    key,
  ]);
  await database(
    'update uploads set width = null, height = null, placeholder = null, variants = null, variants_size = 0, variants_for = null where object_key = ?',
    [key],
  );
  await database('update users set avatar_variants = null where avatar = ?', [body.url]);
};

onBothStorages((uploading) => {
  const restart = async () => {
    const [service] = uploading().stack.services;
    await service?.stop();
    await service?.restart();
  };

  test('images of an earlier version get variants, a placeholder and their bytes in the quota', async () => {
    const person = await images(uploading());
    const bodies = [await person.send(), await person.send({ type: 'avatar' })];
    await person.wear(bodies[1].url);
    const before = await person.used();
    for (const body of bodies) await age(uploading(), body);
    expect((await person.list()).map((each: object) => 'variants' in each)).toEqual([false, false]);
    expect((await person.used()).used).toBe(bodies[0].size + bodies[1].size);
    await restart();
    await until(async () => (await person.list()).every((each: { variants?: unknown[] }) => each.variants));
    for (const { url, width, height, variants } of bodies) {
      const found = (await person.list()).find((each: { url: string }) => each.url === url);
      const sizes = ({ width: w, height: h }: Variant) => [w, h];
      expect(found).toMatchObject({ width, height });
      expect(found.variants.map(sizes)).toEqual(variants.map(sizes));
      expect(Buffer.from(found.placeholder, 'base64').length).toBeLessThanOrEqual(30);
      for (const variant of found.variants) {
        const bytes = await uploading().objects.read(keyOf(variant.url));
        expect([bytes.length, (await sharp(bytes).metadata()).width]).toEqual([variant.bytes, variant.width]);
      }
    }
    const listed: { size: number; variants: Variant[] }[] = await person.list();
    const sum = listed
      .flatMap(({ size, variants }) => [size, ...variants.map(({ bytes }) => bytes)])
      .reduce((a, b) => a + b, 0);
    expect(await person.used()).toMatchObject({ used: sum, files: before.files });
    await until(async () => (await person.profile()).avatarVariants?.length === 2);
    for (const { url } of bodies)
      await until(async () => (await described(uploading(), keyOf(url)))?.variants_until === null);
  });
});

onStorage('disk', (uploading) => {
  const switchTo = async (sizes: string) => {
    const [service] = uploading().stack.services;
    await service?.stop();
    await service?.restart({ env: { IMAGE_SIZES: sizes } });
  };
  beforeEach(() => switchTo(''));

  test('with other widths only missing variants are made, and obsolete ones are deleted', async () => {
    const { send, list, used } = await images(uploading());
    const body = await send();
    const before = await uploading().objects.read(keyOf(body.variants[0].url));
    await switchTo('post:320,500');
    await until(async () => (await list())[0].variants.some(({ width }: Variant) => width === 500));
    await until(async () => (await besides(uploading(), keyOf(body.url))).length === 2);
    const { variants, size, placeholder } = (await list())[0];
    expect(variants.map(({ width }: Variant) => width)).toEqual([320, 500]);
    expect((await uploading().objects.read(keyOf(variants[0].url))).equals(before)).toBe(true);
    expect(placeholder).toBe(body.placeholder);
    for (const width of [640, 1280])
      expect(await uploading().objects.has(keyOf(withWidth(body.url, width)))).toBe(false);
    expect(await used()).toMatchObject({ used: size + variants[0].bytes + variants[1].bytes, files: 1 });
    await switchTo('off');
    await until(async () => (await besides(uploading(), keyOf(body.url))).length === 0);
    expect((await list())[0]).toMatchObject({ variants: [], placeholder });
    expect((await send()).variants).toEqual([]);
    expect(await uploading().objects.has(keyOf(body.variants[0].url))).toBe(false);
    expect(await used()).toMatchObject({ files: 2 });
  });

  test('with other widths a private image leaves the profiles of all users as they are', async () => {
    const { list, send, wear, profile } = await images(uploading());
    const { url } = await send({ type: 'avatar' });
    await wear(url);
    await send({ type: 'post', visibility: 'private' });
    await switchTo('avatar:64,256;post:500');
    await until(async () => (await list())[0].variants.some(({ width }: Variant) => width === 500));
    const key = (await list())[0].key;
    await until(async () => (await described(uploading(), key))?.variants_until === null);
    expect((await profile()).avatarVariants.map(({ width }: Variant) => width)).toEqual([64, 256]);
  });

  test('an image that is missing in the storage stops no others', async () => {
    const { send, list } = await images(uploading());
    const [lost, found] = [await send(), await send({ bytes: await photograph(700, 500), contentType: 'image/jpeg' })];
    for (const body of [lost, found]) await age(uploading(), body);
    await deleteObjects(uploading(), [keyOf(lost.url)]);
    await switchTo('');
    await until(
      async () => (await described(uploading(), keyOf(found.url)))?.variants_for === DEFAULT_SIZES.post.join(','),
    );
    await until(
      async () => (await described(uploading(), keyOf(lost.url)))?.variants_for === DEFAULT_SIZES.post.join(','),
    );
    const listed = Object.fromEntries((await list()).map((each: { url: string }) => [each.url, 'variants' in each]));
    expect(listed).toEqual({ [lost.url]: false, [found.url]: true });
  });
});
