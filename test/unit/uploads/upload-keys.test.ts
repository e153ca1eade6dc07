import fc from 'fast-check';
import { expect, test } from 'vitest';
import { backgroundJob } from '../../../server/activity/caller.ts';
import { defaultUploadTypes, uploadTypes } from '../../../server/lib/media-types.ts';
import { createNewUploads } from '../../../server/uploads/new-uploads.ts';
import { anyCharacter, cases } from '../../rig/client/random.ts';

const MAX_BYTES = 1000;
const extensions = { jpeg: 'jpg' } as Record<string, string>;

test('a key has random characters and the extension of the declared type, and never repeats', async () => {
  const reserved: { objectKey: string; contentType: string; size: number }[] = [];
  const settings = {
    areOnDisk: false,
    types: [...defaultUploadTypes],
    maxBytes: MAX_BYTES,
    quota: 1,
    imageSizes: { avatar: [], post: [] },
  };
  const { presign, storeImage } = createNewUploads(settings, {
    objects: {
      presignPut: async ({ key }: { key: string }) => `http://storage.test/${key}`,
      publicUrl: (key: string) => `http://storage.test/${key}`,
      put: async () => undefined,
    },
    records: { reserve: async (one: never) => void reserved.push(one), commit: async () => true },
    images: { convert: async () => ({ bytes: Buffer.alloc(1), width: 1, height: 1, variants: [], placeholder: '' }) },
  } as never);
  const isUpper = fc.boolean();
  const type = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.tuple(fc.constantFrom(...uploadTypes), isUpper).map(([one, up]) => (up ? one.toUpperCase() : one)),
    },
    fc.constantFrom(
      'text/html',
      'image/svg+xml',
      'image/png; charset=x',
      ' image/png',
      'image/png\r\n',
      '__proto__',
      'constructor',
      '',
    ),
    fc.string({ unit: anyCharacter }),
  );
  await fc.assert(
    fc.asyncProperty(
      type,
      fc.integer({ min: 1, max: 2 * MAX_BYTES }),
      fc.string({ unit: anyCharacter }),
      async (contentType, size, filename) => {
        const isRight =
          (defaultUploadTypes as readonly string[]).includes(contentType.toLowerCase()) && size <= MAX_BYTES;
        const sent = { contentType, size, filename, visibility: 'public' as const };
        const found = await presign('user', sent).then(
          ({ key }) => key,
          ({ code }) => code,
        );
        const subtype = contentType.toLowerCase().split('/')[1] ?? '';
        if (isRight)
          expect(found).toMatch(new RegExp(`^uploads/[A-Za-z0-9_-]{36}\\.${extensions[subtype] ?? subtype}$`));
        else expect(found).toBe('VALIDATION_FAILED');
        const { url } = await storeImage(
          'user',
          { file: { ...sent, name: filename, type: contentType } as never, purpose: 'post', visibility: 'public' },
          backgroundJob,
        );
        expect(url).toMatch(/^http:\/\/storage\.test\/uploads\/[A-Za-z0-9_-]{36}\.webp$/);
      },
    ),
    cases(300),
  );
  expect(new Set(reserved.map(({ objectKey }) => objectKey)).size).toBe(reserved.length);
  expect(new Set(reserved.map(({ contentType }) => contentType))).toEqual(new Set(defaultUploadTypes));
});
