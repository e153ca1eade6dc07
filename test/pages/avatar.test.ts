import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readTexts, writer } from '../../server/texts/index.ts';
import { loggedIn } from '../contract/rig/scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { sendImage } from '../contract/uploads/storage.ts';
import { until } from '../rig/until.ts';
import { findings } from './axe.ts';
import { inBrowser, press, type Scenario, said } from './browser.ts';
import { faultsIn, phone } from './page-texts.ts';

/** Choosing a picture, and moving it in the circle. */

const screens = [
  { viewport: { width: 390, height: 844 }, hasTouch: true },
  { viewport: { width: 1280, height: 800 }, colorScheme: 'dark' },
] as const;

interface Chosen {
  name: string;
  mimeType: string;
  buffer: Buffer;
}

/** A photograph of 12 megapixels, taken with the camera turned: coloured cells, none like its neighbours. */
async function photo(): Promise<Chosen> {
  const noise = Uint8Array.from(
    { length: 24 * 18 * 3 },
    (_, i) => Math.imul(Math.imul(i + 1, 0x9e3779b1) >>> 15, 0x85ebca6b) >>> 24,
  );
  const buffer = await sharp(noise, { raw: { width: 24, height: 18, channels: 3 } })
    .resize(4000, 3000, { kernel: 'cubic' })
    .withExif({ IFD0: { Orientation: '6' } })
    .withMetadata({ orientation: 6 })
    .jpeg({ quality: 95 })
    .toBuffer();
  return { name: 'IMG_0042.jpeg', mimeType: 'image/jpeg', buffer };
}

const SIDE = 100;

/** The pixels in the circle, in a small size: RGB, of each row from left to right. */
async function circleOf(image: Buffer): Promise<number[]> {
  const { data } = await sharp(image)
    .removeAlpha()
    .resize(SIDE, SIDE, { fit: 'fill' })
    .raw()
    .toBuffer({ resolveWithObject: true });
  const isInside = (pixel: number) =>
    Math.hypot((pixel % SIDE) + 0.5 - SIDE / 2, Math.floor(pixel / SIDE) + 0.5 - SIDE / 2) < 0.48 * SIDE;
  return [...data].filter((_, i) => isInside(Math.floor(i / 3)));
}

/** The mean difference of two images in the circle, in units of 0 to 255. */
async function difference(one: Buffer, other: Buffer): Promise<number> {
  const [a, b] = await Promise.all([circleOf(one), circleOf(other)]);
  return a.reduce((sum, value, i) => sum + Math.abs(value - (b[i] ?? 0)), 0) / a.length;
}

const frameOf = (page: Page): Locator => page.getByRole('application', { name: 'Part of the picture' });

/** Where the frame is on the screen. */
async function boxOf(page: Page) {
  const box = await frameOf(page).boundingBox();
  if (!box) throw new Error('the frame is not shown');
  return { ...box, at: (x: number, y: number) => ({ x: box.x + x * box.width, y: box.y + y * box.height }) };
}

async function touch(page: Page, steps: { x: number; y: number }[][]): Promise<void> {
  const session = await page.context().newCDPSession(page);
  for (const [i, touchPoints] of steps.entries()) {
    await session.send('Input.dispatchTouchEvent', { type: i === 0 ? 'touchStart' : 'touchMove', touchPoints });
  }
  await session.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
}

/** How users move and zoom the picture, and the zoom that this leads to, in percent. */
const ways: { way: string; zoom: number; move(page: Page): Promise<void> }[] = [
  { way: 'not at all', zoom: 100, move: async () => undefined },
  {
    way: 'by mouse and wheel',
    zoom: 200,
    async move(page) {
      const { at } = await boxOf(page);
      const [from, to] = [at(0.5, 0.5), at(1.2, 0.3)];
      await page.mouse.move(from.x, from.y);
      await page.mouse.wheel(0, -400);
      await page.mouse.down();
      await page.mouse.move(to.x, to.y, { steps: 5 });
      await page.mouse.up();
      const released = await frameOf(page).screenshot();
      await page.mouse.move(from.x, from.y);
      expect(await difference(released, await frameOf(page).screenshot())).toBeLessThan(1);
    },
  },
  {
    way: 'by two fingers and one',
    zoom: 200,
    async move(page) {
      const { at } = await boxOf(page);
      await touch(page, [
        [at(0.4, 0.5), at(0.6, 0.5)],
        [at(0.35, 0.5), at(0.65, 0.5)],
        [at(0.3, 0.5), at(0.7, 0.5)],
      ]);
      await touch(page, [[at(0.8, 0.2)], [at(0.6, 0.4)], [at(0.5, 0.6)]]);
    },
  },
  {
    way: 'by keyboard',
    zoom: 146,
    async move(page) {
      for (const key of ['+', '+', '+', '+', '+', '-', 'ArrowLeft', 'ArrowLeft', 'ArrowUp'])
        await page.keyboard.press(key);
      await page
        .getByRole('dialog')
        .getByRole('status')
        .filter({ hasText: 'Zoom 146%, centre at 57% from the left' })
        .waitFor();
    },
  },
  {
    way: 'by the slider',
    zoom: 107,
    async move(page) {
      await page.getByLabel('Zoom').press('ArrowRight');
      await page.getByLabel('Zoom').press('ArrowRight');
    },
  },
];

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'avatar-'));
});
afterAll(() => rm(directory, { recursive: true }));

/** Copies a PNG to the clipboard, as programs do; with the text that it shows, if it is one. */
const copyPicture = (page: Page, picture: Buffer, words = '') =>
  page.evaluate(`(async () => {
    const bytes = Uint8Array.from(atob('${picture.toString('base64')}'), (character) => character.charCodeAt(0));
    const text = ${JSON.stringify(words)};
    await navigator.clipboard.write([new ClipboardItem({
      'image/png': new Blob([bytes], { type: 'image/png' }),
      ...(text && { 'text/plain': new Blob([text], { type: 'text/plain' }) }),
    })]);
  })()`);

/** A way in which users give the page a file. */
interface Gift {
  gift: string;
  give(page: Page, file: Chosen): Promise<void>;
}

const chosen: Gift = { gift: 'chosen', give: (page, file) => page.getByLabel('Avatar').setInputFiles(file) };

const dropped: Gift = {
  gift: 'dropped',
  async give(page, { name, buffer }) {
    const path = join(directory, name);
    await writeFile(path, buffer);
    const session = await page.context().newCDPSession(page);
    const data = { items: [], files: [path], dragOperationsMask: 1 };
    // Far from the field.
    for (const type of ['dragEnter', 'dragOver'] as const) {
      await session.send('Input.dispatchDragEvent', { type, x: 20, y: 500, data });
    }
    await page.locator('.over').waitFor();
    await session.send('Input.dispatchDragEvent', { type: 'drop', x: 20, y: 500, data });
    await page.locator('.over').waitFor({ state: 'detached' });
  },
};

const pasted: Gift = {
  gift: 'pasted',
  async give(page, { buffer }) {
    await copyPicture(page, await sharp(buffer).autoOrient().resize(1500).png().toBuffer());
    await page.getByLabel('Bio').press('ControlOrMeta+V');
  },
};

/** The bytes of the images that the page sends. */
function sentBy(page: Page): number[] {
  const sent: number[] = [];
  page.on('requestfinished', async (request) => {
    if (request.url().endsWith('/trpc/upload.image')) sent.push((await request.sizes()).requestBodySize);
  });
  return sent;
}

/** The stored avatar of a user; undefined without one. */
async function storedAvatar({ call }: Scenario, session: string): Promise<Buffer | undefined> {
  const { data } = await call('profile.get', undefined, { session });
  const { avatar } = data.user as { avatar: string };
  return avatar ? Buffer.from(await (await fetch(avatar)).arrayBuffer()) : undefined;
}

const opened = async (page: Page): Promise<void> => {
  await page.getByRole('dialog', { name: 'Position your picture' }).waitFor();
  await until(async () => (await difference(await frameOf(page).screenshot(), await black())) > 20, {
    what: 'the picture',
  });
};

const black = () =>
  sharp({ create: { width: 9, height: 9, channels: 3, background: '#000' } })
    .png()
    .toBuffer();

inBrowser(['embedded'], (scenario) => {
  test.each(screens.flatMap((screen) => ways.map((way) => ({ ...way, screen, width: screen.viewport.width }))))(
    'what is in the circle is stored: moved $way, $width pixels',
    async ({ move, zoom, screen }) => {
      const { session } = await loggedIn(scenario());
      await scenario().visit(
        async (page) => {
          const sent = sentBy(page);
          const file = await photo();
          await page.goto('/dashboard');
          await page.getByLabel('Avatar').setInputFiles(file);
          await opened(page);
          const before = await frameOf(page).screenshot();
          await move(page);
          await until(async () => (await page.getByLabel('Zoom').getAttribute('aria-valuetext')) === `${zoom}%`);
          const shown = await frameOf(page).screenshot();
          expect((await difference(before, shown)) > 5).toBe(zoom > 100);
          await press(page, 'Save picture');
          await said(page, 'status', 'Your new picture was saved.');
          expect(await page.getByRole('dialog').count()).toBe(0);
          const stored = await storedAvatar(scenario(), session);
          expect(await difference(shown, stored ?? (await black()))).toBeLessThan(4);
          expect(sent[0]).toBeLessThan(file.buffer.length / 4);
        },
        { session, ...screen },
      );
    },
  );

  test.each([chosen, dropped, pasted])(
    'a picture that is $gift is shown in the circle, sharp on a dense screen',
    async ({ give }) => {
      const { session } = await loggedIn(scenario());
      await scenario().visit(
        async (page) => {
          await page.goto('/dashboard');
          await page.getByLabel('Bio').fill('Writes about engines.');
          await give(page, await photo());
          await opened(page);
          const { width } = await boxOf(page);
          expect(await frameOf(page).locator('canvas').getAttribute('width')).toBe(String(Math.round(width * 2)));
          const shown = await frameOf(page).screenshot();
          await press(page, 'Save picture');
          await said(page, 'status', 'Your new picture was saved.');
          expect(await difference(shown, (await storedAvatar(scenario(), session)) ?? (await black()))).toBeLessThan(4);
          // The page has stayed, and nothing was pasted into its fields.
          expect(await page.getByLabel('Bio').inputValue()).toBe('Writes about engines.');
        },
        { session, deviceScaleFactor: 2, permissions: ['clipboard-read', 'clipboard-write'] },
      );
    },
  );

  test('a picture that is dropped on the dialog takes the place of the one in it', async () => {
    const { session } = await loggedIn(scenario());
    await scenario().visit(
      async (page) => {
        await page.goto('/dashboard');
        await chosen.give(page, { name: 'a.png', mimeType: 'image/png', buffer: await png() });
        await opened(page);
        const first = await frameOf(page).screenshot();
        await page.getByLabel('Zoom').press('End');
        await dropped.give(page, await photo());
        await until(async () => (await difference(await frameOf(page).screenshot(), first)) > 20);
        expect(await page.getByLabel('Zoom').getAttribute('aria-valuetext')).toBe('100%');
        const shown = await frameOf(page).screenshot();
        await press(page, 'Save picture');
        await said(page, 'status', 'Your new picture was saved.');
        expect(await difference(shown, (await storedAvatar(scenario(), session)) ?? (await black()))).toBeLessThan(4);
      },
      { session },
    );
  });

  test('text is pasted into the field with the focus, also if a picture of it is on the clipboard', async () => {
    const { session } = await loggedIn(scenario());
    await scenario().visit(
      async (page) => {
        await page.goto('/dashboard');
        await page.getByLabel('Bio').focus();
        await copyPicture(page, await png(), 'A cell of a table');
        await page.keyboard.press('ControlOrMeta+V');
        await until(async () => (await page.getByLabel('Bio').inputValue()) === 'A cell of a table');
        expect(await page.getByRole('dialog').count()).toBe(0);
      },
      { session, permissions: ['clipboard-read', 'clipboard-write'] },
    );
  });

  test('the focus is on the field of the file after the picture was removed', async () => {
    const { call, visit } = scenario();
    const { session } = await loggedIn(scenario());
    const { url } = (await sendImage(scenario(), session, { bytes: await png() })).body as { url: string };
    await call('profile.update', { avatar: url }, { session });
    await visit(
      async (page) => {
        await page.goto('/dashboard');
        await press(page, 'Remove picture');
        await said(page, 'status', 'Your picture was removed.');
        expect(await page.evaluate('document.activeElement.id')).toBe('avatar');
      },
      { session },
    );
  });

  test('the dialog has no axe-core findings, fits a narrow phone, and gives the focus back', async () => {
    const { session } = await loggedIn(scenario());
    for (const [language, colorScheme] of [
      ['en', 'light'],
      ['de', 'dark'],
      ['fr', 'light'],
      ['es', 'dark'],
    ] as const) {
      const write = writer(readTexts(undefined), language);
      await scenario().visit(
        async (page) => {
          await page.goto('/dashboard');
          const field = page.getByLabel(write('dashboard.avatar.label'));
          await field.focus();
          await field.setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: await png() });
          await page.getByRole('dialog', { name: write('dashboard.avatar.crop') }).waitFor();
          await page.keyboard.press('ArrowUp');
          await page.getByRole('dialog').getByRole('status').filter({ hasText: '100' }).waitFor();
          expect([...(await findings(page)), ...(await faultsIn(page, language))]).toEqual([]);
          await (colorScheme === 'dark' ? press(page, write('common.cancel')) : page.keyboard.press('Escape'));
          await page.getByRole('dialog').waitFor({ state: 'detached' });
          expect(await page.evaluate('document.activeElement.id')).toBe('avatar');
        },
        { session, colorScheme, viewport: phone, locale: language },
      );
    }
  });

  test.each([true, false])(
    'a cancelled upload changes nothing, and the file can be chosen again: decoded %s',
    async (isDecoded) => {
      const { session } = await loggedIn(scenario());
      await scenario().visit(
        async (page) => {
          if (!isDecoded) await page.addInitScript('delete globalThis.createImageBitmap');
          await page.goto('/dashboard');
          const send = async () => {
            await page
              .getByLabel('Avatar')
              .setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: await png() });
            if (isDecoded) await press(page, 'Save picture');
          };
          // No answer arrives.
          await page.route('**/trpc/upload.image', () => undefined);
          for (const key of isDecoded ? ['Escape', ''] : ['']) {
            await send();
            await page.getByRole('progressbar', { name: 'Upload' }).waitFor();
            expect(await findings(page)).toEqual([]);
            await (key ? page.keyboard.press(key) : press(page, 'Cancel'));
            await said(page, 'status', 'The upload was cancelled. Your picture stays as it was.');
            expect(await page.getByRole('dialog').count()).toBe(0);
          }
          await page.unroute('**/trpc/upload.image');
          expect(await storedAvatar(scenario(), session)).toBeUndefined();
          await send();
          await said(page, 'status', 'Your new picture was saved.');
          expect(await storedAvatar(scenario(), session)).toBeDefined();
        },
        { session },
      );
    },
  );

  test('a picture that the browser cannot cut is reported, and the profile can be saved', async () => {
    const { session } = await loggedIn(scenario());
    await scenario().visit(
      async (page) => {
        await page.addInitScript('HTMLCanvasElement.prototype.toBlob = () => { throw new Error("no memory"); }');
        await page.goto('/dashboard');
        await page.getByLabel('Avatar').setInputFiles(await photo());
        await opened(page);
        await press(page, 'Save picture');
        await said(page, 'alert', 'Something went wrong');
        await press(page, 'Cancel');
        await press(page, 'Save');
        await said(page, 'status', 'Your profile was saved.');
      },
      { session },
    );
  });

  test('a failed upload says why in the dialog, and is sent again as it was cut', async () => {
    const { session } = await loggedIn(scenario());
    await scenario().visit(
      async (page) => {
        await page.goto('/dashboard');
        await page.getByLabel('Avatar').setInputFiles(await photo());
        await opened(page);
        await page.getByLabel('Zoom').press('End');
        const shown = await frameOf(page).screenshot();
        // A proxy answers instead.
        await page.route('**/trpc/upload.image', (route) => route.fulfill({ status: 404, body: 'No such host' }));
        await press(page, 'Save picture');
        await said(page, 'alert', 'The service cannot be reached.');
        await page.unroute('**/trpc/upload.image');
        await press(page, 'Save picture');
        await said(page, 'status', 'Your new picture was saved.');
        expect(await difference(shown, (await storedAvatar(scenario(), session)) ?? (await black()))).toBeLessThan(4);
      },
      { session },
    );
  });

  test('what the browser cannot decode is not cut: the page or the service says why it is refused', async () => {
    const { session } = await loggedIn(scenario());
    const heic = Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from('ftypheic\0\0\0\0mif1heic'), Buffer.alloc(99)]);
    const cases: [file: Chosen, reason: string][] = [
      [
        { name: 'IMG_0042.HEIC', mimeType: 'image/heic', buffer: heic },
        'Only JPEG, PNG, WebP and GIF images are allowed',
      ],
      [
        { name: 'words.png', mimeType: 'image/png', buffer: Buffer.from('words') },
        'The file does not start with a JPEG or PNG',
      ],
      [{ name: 'cut.png', mimeType: 'image/png', buffer: (await png()).subarray(0, 60) }, 'The image is damaged'],
      [{ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('words') }, 'Choose a JPEG or PNG picture'],
      [
        { name: 'large.heic', mimeType: 'image/heic', buffer: Buffer.alloc(5 * 1024 ** 2 + 1) },
        'This picture is 5 MB. Choose one of at most 5 MB',
      ],
    ];
    await scenario().visit(
      async (page) => {
        await page.goto('/dashboard');
        for (const [file, reason] of cases) {
          await page.getByLabel('Avatar').setInputFiles(file);
          await said(page, 'alert', reason);
          expect(await page.getByLabel('Avatar').getAttribute('aria-invalid'), file.name).toBe('true');
          expect(await page.getByRole('dialog').count(), file.name).toBe(0);
        }
        const { data } = await scenario().call('upload.list', {}, { session });
        expect(data.data).toEqual([]);
      },
      { session },
    );
  });
});
