import { rgbaToThumbHash, thumbHashToDataURL } from 'thumbhash';
import { expect, test } from 'vitest';
import { placeholderUrl, srcSet } from '../../../client/src/pictures.ts';

const url = 'https://x.test/a.webp';
const variants = [
  { width: 320, height: 240, url: 'https://x.test/a_320.webp', bytes: 9 },
  { width: 640, height: 480, url: 'https://x.test/a_640.webp', bytes: 99 },
];

test('a srcset has the variants by width, and the image last', () => {
  expect(srcSet({ url, width: 1600, variants })).toBe(
    'https://x.test/a_320.webp 320w, https://x.test/a_640.webp 640w, https://x.test/a.webp 1600w',
  );
  expect(srcSet({ url, width: 90, variants: [] })).toBe('https://x.test/a.webp 90w');
});

test('without its width an image is not in the srcset', () => {
  expect(srcSet({ url, variants })).toBe('https://x.test/a_320.webp 320w, https://x.test/a_640.webp 640w');
  expect(srcSet({ url })).toBe('');
});

test('the URL of a placeholder is that of its ThumbHash', () => {
  const hash = rgbaToThumbHash(2, 1, Buffer.from('ff0000ff00ff00ff', 'hex'));
  expect(placeholderUrl(Buffer.from(hash).toString('base64'))).toBe(thumbHashToDataURL(hash));
  expect(placeholderUrl(Buffer.from(hash).toString('base64'))).toMatch(/^data:image\/png;base64,/);
});
