import { type Browser, chromium } from 'playwright-core';
import { requireBinary } from './debian.ts';

const names = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** Nothing of its own goes out: what a test sees on the network is what the page did. */
const quiet = [
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

/**
 * A headless Chromium or Chrome from the PATH, above all its headless shell, which takes half the CPU; on Debian, as root,
 * that is installed if there is none. Close it after the last test.
 */
export const startChromium = (): Promise<Browser> =>
  chromium.launch({
    executablePath: requireBinary({ names, debianPackage: 'chromium-headless-shell' }),
    // Chromium's sandbox does not work for root, who runs the tests in a container.
    args: process.getuid?.() === 0 ? ['--no-sandbox', ...quiet] : quiet,
  });
