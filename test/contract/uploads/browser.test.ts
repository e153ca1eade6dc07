import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium } from '../../rig/client/chromium.ts';
import { photograph } from './corpus.ts';
import { onBothStorages, uploader } from './storage.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await startChromium();
});
afterAll(() => browser?.close());

/** The storage's origin for the CSP, wherever the tests run it. */
const env = { API_HOST: '127.0.0.1:*' };

onBothStorages((uploading) => {
  test('an own page can upload both ways under the documented CSP, and show the uploads', async () => {
    const { stack } = uploading();
    const { session } = await uploader(uploading());
    const context = await browser.newContext();
    await context.addCookies([{ name: 'auth_session', value: session, url: stack.appUrl, sameSite: 'Strict' }]);
    const page = await context.newPage();
    await page.goto(`${stack.appUrl}/login`);

    const photo = (await photograph(640, 480)).toString('base64');
    const result = await page.evaluate(async (base64) => {
      const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
      const file = new Blob([bytes], { type: 'image/jpeg' });
      const post = (path: string, body: object) =>
        fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
      const declared = { filename: 'photo.jpg', contentType: file.type, size: file.size };
      const answer: unknown = await (await post('/api/upload/presign', declared)).json();
      const address = answer as { presignedUrl: string; publicUrl: string; key: string };
      const put = await fetch(address.presignedUrl, {
        method: 'PUT',
        headers: { 'content-type': file.type },
        body: file,
      });
      const confirmed = await post('/api/upload/confirm', { key: address.key });
      const form = new FormData();
      form.set('file', file, 'photo.jpg');
      form.set('type', 'avatar');
      const image: unknown = await (await fetch('/api/upload/image', { method: 'POST', body: form })).json();
      const back = await fetch(address.publicUrl);
      return {
        put: put.status,
        confirmed: confirmed.status,
        image,
        sent: file.size,
        received: (await back.blob()).size,
      };
    }, photo);

    expect(result).toMatchObject({ put: 200, confirmed: 200, image: { success: true, width: 512, height: 512 } });
    expect(result.received).toBe(result.sent);
    await context.close();
  });
}, env);
