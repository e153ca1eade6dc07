import { expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { png } from '../contract/uploads/corpus.ts';
import { keyOf, onBothStorages, sendImage, uploader } from '../contract/uploads/storage.ts';
import { runToItsEnd } from '../rig/process/command.ts';

/** `npm run images -- variants`: the smaller pictures of images for other IMAGE_SIZES. */

onBothStorages(
  (uploading) => {
    const images = (...args: string[]) =>
      runToItsEnd('images', { ...uploading().stack.services[0]?.env, IMAGE_SIZES: 'post:50,100' }, args);

    test('makes the widths of IMAGE_SIZES, and says how many images are done', async () => {
      const { session } = await uploader(uploading());
      const call = callerOf('rest', uploading().stack.url);
      const sent: { url: string; variants: unknown[] }[] = [];
      for (let n = 0; n < 3; n++)
        sent.push((await sendImage(uploading(), session, { bytes: await png(200, 100) })).body);
      expect(sent.map(({ variants }) => variants)).toEqual([[], [], []]);
      const { code, stdout, stderr } = await images('variants');
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      const lines = stdout.trimEnd().split('\n');
      expect([lines[0], lines.at(-1)]).toEqual(['0 of 3 images', '3 of 3 images']);
      const { data } = (await call('upload.list', {}, { session })).data;
      for (const { variants } of data) expect(variants.map(({ width }: { width: number }) => width)).toEqual([50, 100]);
      for (const { url } of data.flatMap(({ variants }: { variants: unknown[] }) => variants))
        expect(await uploading().objects.has(keyOf(url))).toBe(true);
      expect(await images('variants')).toEqual({ code: 0, stdout: '0 of 0 images\n0 of 0 images\n', stderr: '' });
    });

    test('a wrong use is explained', async () => {
      for (const args of [[], ['thumbnails'], ['variants', 'again'], ['--all']])
        expect(await images(...args)).toMatchObject({
          code: 2,
          stdout: '',
          stderr: expect.stringContaining('npm run images -- variants'),
        });
    });
  },
  { IMAGE_SIZES: 'off' },
);
