import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { languages } from '../../server/shared/texts/languages.ts';
import { startChromium } from '../rig/client/chromium.ts';
import { inLanguage, rows } from '../unit/mail/every-mail.ts';
import { findings } from './axe.ts';
import { phone } from './page-texts.ts';

/** Every mail as a phone shows it. Pictures are those of the brand: none here. */

/** Rules for whole pages: a mail is shown within one. */
const ofPages = /^(?:landmark-one-main|region) /;

let browser: Browser;
let page: Page;
beforeAll(async () => {
  browser = await startChromium();
  page = await browser.newPage({ viewport: phone });
});
afterAll(() => browser?.close());

describe.each(languages)('in %s', (language) => {
  test('no mail is wider than the screen', async () => {
    const tooWide: unknown[] = [];
    for (const row of rows) {
      await page.setContent((await inLanguage(row, language)).html);
      const width = await page.evaluate('document.documentElement.scrollWidth');
      if (width !== phone.width) tooWide.push([...row, width]);
    }
    expect(tooWide).toEqual([]);
  });
});

test.each(['light', 'dark'] as const)('all text can be read in the %s scheme', async (colorScheme) => {
  await page.emulateMedia({ colorScheme });
  for (const row of rows) {
    await page.setContent((await inLanguage(row, 'en')).html);
    const found = (await findings(page)).filter((text) => !ofPages.test(text));
    expect([row, found]).toEqual([row, []]);
  }
});

test('lines of the text part have no space at their end, and no three in a row are empty', async () => {
  for (const language of languages)
    for (const row of rows) expect((await inLanguage(row, language)).text).not.toMatch(/[ \t]\n|\n{4}|\n\n$/);
});
