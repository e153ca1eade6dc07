import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import sharp from 'sharp';
import { startChromium } from '../rig/client/chromium.ts';
import { type Service, startService } from '../rig/process/service.ts';
import { until } from '../rig/until.ts';
import { everyPageEnv, takeEveryPage } from './every-page.ts';

/** Takes the screenshots of README and docs/front-ends.md; with a folder as argument, those of every page instead. */
const everyPage = process.argv[2];
const FOLDER = join(import.meta.dirname, '../../client/pages/screenshots');
/** For the activity: another program would be named in it. */
const CHROME = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36';
const ada = { name: 'Ada Lovelace', email: 'ada@example.com', password: 'Analytical-1843' };

const service = await startService(everyPage ? { env: everyPageEnv } : {});
const browser = await startChromium();
try {
  if (everyPage) {
    await register(service);
    await takeEveryPage(browser, service, ada, everyPage);
  } else await takeForDocuments();
} finally {
  await browser.close();
  await service.stop();
}

async function takeForDocuments() {
  await mkdir(FOLDER, { recursive: true });
  await take('register', 'light', async (page) => {
    await page.goto('/register');
    await page.getByLabel('Name').fill(ada.name);
    await page.getByLabel('Email').fill(ada.email);
    await page.getByLabel('Password').fill('Analytical');
  });
  await register(service);
  await take('dashboard', 'dark', async (page) => {
    await page.goto('/login');
    await page.getByLabel('Email').fill(ada.email);
    await page.getByLabel('Password').fill(ada.password);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.getByLabel('Bio').fill('Writes programs for a machine that is still to be built.');
    await page.getByLabel('Location').fill('London');
    await page.getByLabel('Website').fill('https://example.com/ada');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Your profile was saved.').waitFor();
    await page.getByLabel('Avatar').setInputFiles({
      name: 'ada.png',
      mimeType: 'image/png',
      buffer: await portrait(),
    });
    await page.getByRole('button', { name: 'Save picture' }).click();
    await page.getByText('Your new picture was saved.').waitFor();
    await page.evaluate('document.activeElement.blur()');
  });
}

async function take(name: string, colorScheme: 'light' | 'dark', steps: (page: Page) => Promise<void>) {
  const page = await browser.newPage({
    baseURL: service.appUrl,
    colorScheme,
    locale: 'en-GB',
    viewport: { width: 720, height: 760 },
  });
  await steps(page);
  const png = await page.screenshot({ fullPage: true });
  await writeFile(join(FOLDER, `${name}.png`), await sharp(png).png({ palette: true, effort: 10 }).toBuffer());
  await page.context().close();
}

async function register({ url }: Service): Promise<void> {
  const post = (path: string, body: object, cookie = '') =>
    fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', cookie, 'user-agent': CHROME },
      body: JSON.stringify(body),
    });
  // Verified in the browser that registered: otherwise the password counts as another person's.
  const browserCookie = (await post('/auth/register', ada)).headers.get('set-cookie')?.split(';')[0];
  const token = await until(async () => {
    const mails = await (await fetch(`${url}/dev/mail?to=${ada.email}`)).text();
    return /token=([\w-]+)/.exec(mails)?.[1];
  });
  await post('/auth/verify-email', { token }, browserCookie);
}

/** A person, in a few shapes. */
function portrait(): Promise<Buffer> {
  return sharp(
    Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" width="512" height="512">
<linearGradient id="sky" x2="0" y2="1"><stop stop-color="#fbbf77"/><stop offset="1" stop-color="#e0689a"/></linearGradient>
<rect width="512" height="512" fill="url(#sky)"/>
<path d="M128 330q-20-210 128-216 148 6 128 216z" fill="#3b2440"/>
<path d="M96 512q10-130 160-140 150 10 160 140z" fill="#4c3a8f"/>
<rect x="222" y="300" width="68" height="90" rx="30" fill="#eab79a"/>
<ellipse cx="256" cy="238" rx="84" ry="100" fill="#f6cdb2"/>
<path d="M166 232q14-92 90-96 76 4 90 96-50-14-90-72-40 58-90 72z" fill="#3b2440"/>
</svg>`),
  )
    .png()
    .toBuffer();
}
