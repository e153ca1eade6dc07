import fc from 'fast-check';
import { expect, test } from 'vitest';
import { deviceOf } from '../../../server/activity/devices.ts';
import { cases } from '../../rig/client/random.ts';

const mozilla = (system: string, rest: string) => `Mozilla/5.0 (${system}) ${rest}`;
const webkit = 'AppleWebKit/537.36 (KHTML, like Gecko)';

test.each([
  ['Firefox on Linux', mozilla('X11; Linux x86_64; rv:140.0', 'Gecko/20100101 Firefox/140.0')],
  ['Chrome on Android', mozilla('Linux; Android 14; Pixel 8', `${webkit} Chrome/138.0.0.0 Mobile Safari/537.36`)],
  [
    'Microsoft Edge on Windows',
    mozilla('Windows NT 10.0; Win64; x64', `${webkit} Chrome/138.0.0.0 Safari/537.36 Edg/138.0.0.0`),
  ],
  [
    'Safari on iOS',
    mozilla('iPhone; CPU iPhone OS 17_5 like Mac OS X', `${webkit} Version/17.5 Mobile/15E148 Safari/604.1`),
  ],
  ['curl', 'curl/8.5.0'],
  ['okhttp', 'okhttp/4.12.0'],
  ['node', 'node'],
  ['Unknown device', ''],
  ['Unknown device', '/'],
  ['Unknown device', '<b>bold</b>/1.0 (x)'],
  ['Unknown device', 'x'.repeat(41)],
  ['Unknown device', '\u00e9\u00e9/1'],
  ['Linux', `${'x'.repeat(41)}/1 (X11; Linux x86_64)`],
])('%s: %j', async (device, userAgent) => {
  expect(await deviceOf(userAgent)).toBe(device);
});

test('text beyond the length of any User-Agent is ignored', async () => {
  expect(await deviceOf(`${' '.repeat(600)}Firefox/140.0`)).toBe('Unknown device');
});

test('any text becomes a short line of plain characters', async () => {
  const piece = fc.constantFrom(
    'Mozilla/5.0 ',
    'Firefox/',
    'Windows NT ',
    'Android ',
    'Version/',
    '(',
    ')',
    ';',
    '1.2',
    'x',
  );
  const text = fc.oneof(
    fc.string({ maxLength: 600 }),
    fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join('')),
  );
  await fc.assert(
    fc.asyncProperty(text, async (userAgent) => {
      expect(await deviceOf(userAgent)).toMatch(/^[\w .-]{1,100}$/);
    }),
    cases(1000),
  );
});

test.each(['/ (', '/', '(', ' ', 'a/ ', 'version/', 'x'])('100 kB of %j cost under 20 ms of CPU', async (piece) => {
  const text = piece.repeat(Math.ceil(100_000 / piece.length));
  const costs: number[] = [];
  for (let run = 0; run < 5; run++) {
    const before = process.threadCpuUsage();
    await deviceOf(text);
    const { user, system } = process.threadCpuUsage(before);
    costs.push((user + system) / 1000);
  }
  expect(Math.min(...costs)).toBeLessThan(20);
});
