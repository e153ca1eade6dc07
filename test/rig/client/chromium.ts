import { type Browser, chromium } from 'playwright-core';
import { requireBinary } from '../servers/debian.ts';

const names = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** Disables Chromium's own traffic: all requests in a test are the page's. */
const quiet = [
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

/**
 * A headless Chromium or Chrome from the PATH, preferably its headless shell, which takes half the CPU. On Debian, as
 * root, it is installed if missing. Close it after the last test.
 */
export const startChromium = async (): Promise<Browser> =>
  chromium.launch({
    executablePath: await requireBinary({ names, debianPackage: 'chromium-headless-shell' }),
    // Chromium's sandbox does not work for root, the user in containers.
    args: process.getuid?.() === 0 ? ['--no-sandbox', ...quiet] : quiet,
  });

let kept: Promise<Browser> | undefined;

/** The worker's Chromium, started once for all of its files. A test closes its own context; the browser ends with the worker. */
export async function workersChromium(): Promise<Browser> {
  // After a failed start the next file tries again.
  const browser = await kept?.catch(() => undefined);
  if (!browser?.isConnected()) kept = startChromium();
  return kept as Promise<Browser>;
}
