import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { storedVariants, variantKey } from '../../../entities/index.ts';
import { backgroundJob } from '../../../server/activity/caller.ts';
import { createActivity } from '../../../server/activity/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { ObjectStorage } from '../../../server/parts/object-storage/contract.ts';
import { createDeletions } from '../../../server/uploads/deletions.ts';
import type { Images, SentImage } from '../../../server/uploads/images/images.ts';
import { createUploadLeases } from '../../../server/uploads/leases.ts';
import { createNewUploads } from '../../../server/uploads/new-uploads.ts';
import { createRecords, type UploadRecord } from '../../../server/uploads/records.ts';
import { createUsage } from '../../../server/uploads/usage.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { MINUTE, memoryStorage, uploadRows } from './upload-rows.ts';

const MEGABYTE = 1024 ** 2;
const MAX_BYTES = 200 * MEGABYTE;
const QUOTA = 300 * MEGABYTE;

let database: Database;
let rows: ReturnType<typeof uploadRows>;
beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('new-uploads-of-rows') });
  await database.migrate();
  rows = uploadRows(database);
});
afterAll(() => database.close());
beforeEach(() => rows.clear());

/** What the conversion makes of every image. */
const converted = {
  bytes: Buffer.alloc(1000),
  width: 100,
  height: 60,
  variants: [{ bytes: Buffer.alloc(20), width: 20, height: 12 }],
  placeholder: 'hash',
  scan: null as 'clean' | null,
};

interface Setting {
  isScanned?: boolean;
  behaviour?: Partial<ObjectStorage>;
  requireAsDeclared?(upload: UploadRecord): Promise<void>;
  image?: Partial<typeof converted>;
}

function newUploads({ isScanned = false, behaviour, requireAsDeclared, image }: Setting = {}) {
  const { storage, objects: stored, calls } = memoryStorage();
  const objects: ObjectStorage = {
    ...storage,
    presignPut: async (address) => JSON.stringify(address),
    async copy(from, to, contentType) {
      calls.push(`copy ${from} ${to} ${contentType}`);
      return true;
    },
    ...behaviour,
  };
  const usage = createUsage(database, { quota: QUOTA });
  const activity = createActivity(database, { keptDays: 1 });
  const records = createRecords(database, usage, activity);
  const leases = createUploadLeases(database, 'all');
  const { abandon } = createDeletions({ database, activity, objects, usage, leases });
  const checked: UploadRecord[] = [];
  const uploads = createNewUploads(
    {
      areOnDisk: false,
      types: ['application/pdf', 'image/png', 'image/jpeg'],
      maxBytes: MAX_BYTES,
      quota: QUOTA,
      imageSizes: { avatar: [64], post: [20, 40] },
    },
    {
      async requireAsDeclared(upload) {
        checked.push(upload);
        await requireAsDeclared?.(upload);
      },
      abandon,
      objects,
      records,
      usage,
      images: { convert: async () => ({ ...converted, ...image }) } as unknown as Images,
      isScanned,
    },
  );
  const upload = async (key: string) => (await records.find(key)) as UploadRecord;
  return { ...uploads, usage, upload, stored, calls, checked };
}

const pdf = (size = 1000, visibility: 'public' | 'private' = 'public') => ({
  contentType: 'application/pdf',
  size,
  visibility,
});

const expectNear = (time: unknown, fromNow: number) =>
  expect(Math.abs(Number(time) - Date.now() - fromNow)).toBeLessThan(5000);

describe('an address to upload', () => {
  test.each([
    ['public', false, 'uploads/', 'https://x.test/'],
    ['private', false, 'private/', ''],
    ['public', true, 'uploads/', 'https://x.test/'],
    ['private', true, 'private/', ''],
  ] as const)(
    'for a %s file (scanned: %s) is for its type and size, for five minutes',
    async (visibility, isScanned, prefix, base) => {
      const { presign } = newUploads({ isScanned });
      const { presignedUrl, publicUrl, key, ...address } = await presign('ada', {
        ...pdf(1000, visibility),
        contentType: 'Application/PDF',
      });
      expect(address).toEqual({ expiresIn: 300 });
      expect(key).toMatch(new RegExp(`^${prefix}.{36}\\.pdf$`));
      expect(publicUrl).toBe(base && base + key);
      const sentTo = isScanned ? key.replace(prefix, 'pending/') : key;
      expect(JSON.parse(presignedUrl)).toEqual({
        key: sentTo,
        contentType: 'Application/PDF',
        size: 1000,
        expiresInSeconds: 300,
      });
      const row = await rows.of(key);
      expect(row).toMatchObject({
        user_id: 'ada',
        purpose: 'direct',
        content_type: 'application/pdf',
        size: 1000,
        state: isScanned ? 'pending' : 'expected',
        scan: isScanned ? 'due' : null,
        width: null,
        height: null,
        placeholder: null,
        variants: null,
        variants_size: 0,
        variants_for: null,
        variants_until: null,
        multipart_id: null,
      });
      expectNear(row?.created_at, 0);
      expectNear(row?.expires_at, 5 * MINUTE);
      // The scan of a file looks for it from the start.
      expectNear(row?.due_at, isScanned ? 5000 : 10 * MINUTE);
      expect(await rows.keysBeside()).toEqual(isScanned ? [sentTo] : []);
    },
  );

  test('for a large file says how it may be sent in parts', async () => {
    const { presign } = newUploads();
    expect((await presign('ada', pdf(101 * MEGABYTE))).parts).toEqual({ size: 5 * MEGABYTE, count: 21 });
    expect(await presign('ada', pdf(100 * MEGABYTE))).not.toHaveProperty('parts');
  });

  const refusal = (field: string, rule: string, message: string) => ({
    code: 'VALIDATION_FAILED',
    details: { [field]: { rule, message } },
  });
  const types = 'Must be one of application/pdf, image/png, image/jpeg';

  test.each([
    ['of another type', { contentType: 'video/mp4' }, refusal('contentType', 'not_allowed', types)],
    ['of an unknown type', { contentType: 'text/x' }, refusal('contentType', 'not_allowed', types)],
    ['too large', { size: MAX_BYTES + 1 }, refusal('size', 'too_large', `Must be at most ${MAX_BYTES} bytes`)],
  ])('is refused for a file that is %s', async (_title, sent, expected) => {
    const { presign, usage } = newUploads();
    await expect(presign('ada', { ...pdf(), ...sent })).rejects.toMatchObject(expected);
    expect(await usage.of('ada')).toEqual({ used: 0, files: 0 });
  });

  test('is refused above the quota, which the refusal tells', async () => {
    const { presign, usage } = newUploads();
    await presign('ada', pdf(MAX_BYTES));
    const message = `You use ${MAX_BYTES} of ${QUOTA} bytes; ${MAX_BYTES} more do not fit`;
    await expect(presign('ada', pdf(MAX_BYTES))).rejects.toMatchObject(refusal('size', 'quota', message));
    await presign('ada', pdf(QUOTA - MAX_BYTES));
    await presign('eve', pdf(MAX_BYTES));
    expect(await usage.of('ada')).toEqual({ used: QUOTA, files: 2 });
  });

  test('is not given out if the database refuses: the error is the database’s', async () => {
    const { presign } = newUploads();
    const user = null as unknown as string;
    await expect(presign(user, pdf())).rejects.not.toMatchObject({ code: 'VALIDATION_FAILED' });
  });
});

const file = {} as SentImage;

describe('an image', () => {
  test.each([
    ['public', 'post', null, '20,40'],
    ['private', 'avatar', 'clean', '64'],
  ] as const)('that is %s is stored with its variants: a %s', async (visibility, purpose, scan, madeFor) => {
    const { storeImage, stored, usage, calls } = newUploads({ image: { scan } });
    const image = await storeImage('ada', { file, purpose, visibility }, backgroundJob);
    const [key = '', variant = ''] = [...stored.keys()].sort((a, b) => a.length - b.length);
    const isPublic = visibility === 'public';
    expect(key).toMatch(isPublic ? /^uploads\/.{36}\.webp$/ : /^private\/.{36}\.webp$/);
    expect(variant).toBe(variantKey(key, { width: 20 }));
    const urlOf = (of: string) => (isPublic ? `https://x.test/${of}` : '');
    expect(image).toEqual({
      url: urlOf(key),
      ...(!isPublic && { name: key.slice('private/'.length) }),
      size: 1000,
      width: 100,
      height: 60,
      variants: [{ width: 20, height: 12, bytes: 20, url: urlOf(variant) }],
      placeholder: 'hash',
    });
    const row = await rows.of(key);
    expect(row).toMatchObject({
      user_id: 'ada',
      purpose,
      content_type: 'image/webp',
      size: 1000,
      state: 'kept',
      scan,
      width: 100,
      height: 60,
      placeholder: 'hash',
      variants: '[[20,12,20]]',
      variants_size: 20,
      variants_for: madeFor,
      variants_until: null,
      due_at: null,
    });
    expectNear(row?.expires_at, MINUTE);
    expect(await usage.of('ada')).toEqual({ used: 1020, files: 1 });
    expect([await rows.keysBeside(), await rows.events()]).toEqual([[variant], [`ada upload-stored {"key":"${key}"}`]]);
    expect(calls.sort()).toEqual([`put ${key} image/webp`, `put ${variant} image/webp`].sort());
  });

  test('is refused above the quota, with its variants, before anything is stored', async () => {
    const { presign, storeImage, calls } = newUploads();
    await presign('ada', pdf(MAX_BYTES));
    await presign('ada', pdf(QUOTA - MAX_BYTES - 1019));
    await expect(
      storeImage('ada', { file, purpose: 'post', visibility: 'public' }, backgroundJob),
    ).rejects.toMatchObject({
      code: 'VALIDATION_FAILED',
      details: { file: { rule: 'quota', message: expect.stringMatching(/; 1020 more do not fit$/) } },
    });
    expect(calls).toEqual([]);
  });

  test('whose storing took too long is refused: it is being deleted', async () => {
    const { storeImage } = newUploads({
      behaviour: {
        async put() {
          await database.write((tables) => tables.updateTable('uploads').set({ state: 'doomed' }).execute());
        },
      },
    });
    await expect(
      storeImage('ada', { file, purpose: 'post', visibility: 'public' }, backgroundJob),
    ).rejects.toMatchObject({
      code: 'SERVICE_UNAVAILABLE',
      retryAfter: 5,
    });
    expect(await rows.events()).toEqual([]);
  });
});

describe('a public copy', () => {
  const imageRow = {
    object_key: 'private/a.webp',
    width: 100,
    height: 60,
    placeholder: 'hash',
    variants: storedVariants([{ width: 20, height: 12, bytes: 20 }]),
    variants_for: '20',
    variants_size: 20,
    scan: 'clean',
  } as const;

  test('of an image has its variants, and what is known about it', async () => {
    await rows.insert('a', imageRow);
    const { publish, upload, calls, checked, usage } = newUploads();
    const to = await publish(await upload('private/a.webp'), backgroundJob);
    expect(to).toMatch(/^uploads\/.{36}\.webp$/);
    const { object_key: _key, ...same } = imageRow;
    expect(await rows.of(to)).toMatchObject({
      ...same,
      state: 'kept',
      purpose: 'post',
      content_type: 'image/webp',
      size: 1000,
      variants_until: null,
      due_at: null,
    });
    const variant = variantKey(to, { width: 20 });
    expect(calls.sort()).toEqual([
      `copy private/a.webp ${to} image/webp`,
      `copy private/a_20.webp ${variant} image/webp`,
    ]);
    expect([await rows.keysBeside(), await usage.of('ada')]).toEqual([[variant], { used: 1020, files: 1 }]);
    // The copy is checked as any upload that was never scanned or confirmed.
    expect(checked).toMatchObject([
      { objectKey: 'private/a.webp', scan: 'clean', state: 'kept' },
      { objectKey: to, scan: null, state: 'expected', confirmedVersion: null },
    ]);
  });

  test.each([
    ['whose variants were never made', { variants_for: null }],
    ['without a width', { width: null }],
    ['without a height', { height: null }],
    ['without a placeholder', { placeholder: null }],
  ])('of an image %s has none yet', async (_title, row) => {
    await rows.insert('a', { ...imageRow, ...row });
    const { publish, upload, calls } = newUploads();
    const to = await publish(await upload('private/a.webp'), backgroundJob);
    expect(await rows.of(to)).toMatchObject({
      width: null,
      height: null,
      placeholder: null,
      variants: null,
      variants_for: null,
      variants_size: 0,
    });
    expect(calls).toHaveLength(1);
  });

  const pdfRow = {
    object_key: 'private/a.pdf',
    purpose: 'direct',
    content_type: 'application/pdf',
    confirmed_version: '1',
  } as const;
  const publishPdf = async (setting: Setting) => {
    await rows.insert('a', pdfRow);
    const uploads = newUploads(setting);
    return { ...uploads, published: uploads.publish(await uploads.upload('private/a.pdf'), backgroundJob) };
  };
  const copyOfPdf = () =>
    database.query((tables) =>
      tables.selectFrom('uploads').selectAll().where('object_key', 'like', 'uploads/%').executeTakeFirst(),
    );

  test('accepts nothing from clients while it is made', async () => {
    let during: Awaited<ReturnType<typeof copyOfPdf>>;
    const { published } = await publishPdf({
      behaviour: {
        async copy() {
          during = await copyOfPdf();
          return true;
        },
      },
    });
    expect(await published).toMatch(/\.pdf$/);
    expect(during).toMatchObject({ state: 'expected', user_id: 'ada', purpose: 'direct' });
    expectNear(during?.variants_until, MINUTE);
    expectNear(during?.expires_at, MINUTE);
    expectNear(during?.due_at, 6 * MINUTE);
    expect((await copyOfPdf())?.confirmed_version).toBeNull();
  });

  test('is not made of what is not as declared', async () => {
    const refused = new Error('not as declared');
    const { published, calls } = await publishPdf({ requireAsDeclared: () => Promise.reject(refused) });
    await expect(published).rejects.toBe(refused);
    expect([calls, await copyOfPdf()]).toEqual([[], undefined]);
  });

  test.each<[string, Setting, object]>([
    ['whose file was deleted', { behaviour: { copy: async () => false } }, { code: 'NOT_FOUND' }],
    ['that the storage refuses', { behaviour: { copy: () => Promise.reject(new Error('full')) } }, { message: 'full' }],
    [
      'whose file was replaced meanwhile',
      {
        requireAsDeclared: async ({ objectKey }) => {
          if (objectKey.startsWith('uploads/')) throw new Error('replaced');
        },
      },
      { message: 'replaced' },
    ],
  ])('%s is deleted, also what arrives later', async (_title, setting, refusal) => {
    const { published, calls } = await publishPdf(setting);
    await expect(published).rejects.toMatchObject(refusal);
    const copy = await copyOfPdf();
    expect(copy).toMatchObject({ state: 'doomed' });
    expect(calls).toContain(`delete ${copy?.object_key}`);
  });

  test('whose row is gone when it fails stays away', async () => {
    const { published } = await publishPdf({
      behaviour: {
        async copy() {
          await rows.clear();
          return true;
        },
      },
    });
    await expect(published).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  });

  test('above the quota is refused, with its variants', async () => {
    await rows.insert('a', imageRow);
    const { publish, upload, presign, calls } = newUploads();
    await presign('ada', pdf(MAX_BYTES));
    await presign('ada', pdf(QUOTA - MAX_BYTES - 1019));
    await expect(publish(await upload('private/a.webp'), backgroundJob)).rejects.toMatchObject({
      details: { name: { rule: 'quota' } },
    });
    expect(calls).toEqual([]);
  });
});
