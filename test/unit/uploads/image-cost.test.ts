import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { requireAffordable } from '../../../server/uploads/images/image-cost.ts';
import {
  arithmeticBomb,
  emptyPng,
  jpeg,
  MARKER,
  png,
  polyglots,
  profileBomb,
  scanBomb,
} from '../../contract/uploads/corpus.ts';

// A copy, because the result shares the memory of its input.
const ofPng = (bytes: Buffer) => requireAffordable(Buffer.from(bytes), 'image/png');
const ofJpeg = (bytes: Buffer) => requireAffordable(bytes, 'image/jpeg');
const refusal = (rule: string, message: string | RegExp) => ({
  status: 400,
  message: expect.stringMatching(message),
  details: { file: { message: expect.stringMatching(message), rule } },
});
const tooCostly = refusal('too_costly', /^The image takes too long to convert/);
const whole = { width: 6000, height: 4000, bitDepth: 1 };

describe('the number of pixels', () => {
  test.each([
    ['24 million', whole, undefined],
    ['a row more', { ...whole, height: 4001 }, 'The image has more than 24 million pixels'],
    [
      'so many that sharp would refuse',
      { ...whole, width: 20_000, height: 20_000 },
      'The image has more than 24 million pixels',
    ],
    ['a row of 16383', { width: 16_383, height: 1 }, undefined],
    ['a row of 16384', { width: 16_384, height: 1 }, 'A side of the image has more than 16383 pixels'],
    ['a column of 16384', { width: 1, height: 16_384 }, 'A side of the image has more than 16383 pixels'],
  ])('%s', async (_name, header, message) => {
    const outcome = ofPng(emptyPng(header));
    if (message === undefined) expect(await outcome).toMatchObject({ isHeavy: false });
    else await expect(outcome).rejects.toMatchObject(refusal('too_many_pixels', `^${message}$`));
  });
});

describe('a PNG in passes is held in memory, and refused past 100 MB', () => {
  const inPasses = { width: 5000, colorType: 6, interlaced: true };
  test.each([
    ['5000×5001 in 1 byte of RGBA: too many pixels, whatever they take', { ...inPasses, height: 5001 }, false],
    ['5000×4800 in 1 byte of RGBA', { ...inPasses, height: 4800 }, true],
    ['5000×2500 in 2 bytes of RGBA', { ...inPasses, height: 2500, bitDepth: 16 }, true],
    ['5000×2501 in 2 bytes of RGBA', { ...inPasses, height: 2501, bitDepth: 16 }, false],
    ['5000×2501 in 2 bytes, line by line', { ...inPasses, height: 2501, bitDepth: 16, interlaced: false }, true],
  ])('%s', async (_name, header, isAffordable) => {
    const outcome = ofPng(emptyPng(header));
    if (isAffordable) expect(await outcome).toMatchObject({ isHeavy: false });
    else await expect(outcome).rejects.toMatchObject({ status: 400 });
  });
});

test('a JPEG in passes has at most 128 scans, and is converted alone if it is large', async () => {
  // 6000×4000 grey, 2 bytes per coefficient.
  expect(await ofJpeg(scanBomb(128))).toMatchObject({ isHeavy: false });
  await expect(ofJpeg(scanBomb(129))).rejects.toMatchObject(tooCostly);
  const inColour = sharp({ create: { width: 5000, height: 3400, channels: 3, background: 'red' } });
  expect(await ofJpeg(await inColour.jpeg({ progressive: true }).toBuffer())).toMatchObject({ isHeavy: true });
});

describe('arithmetic coding is recognized by the marker of the first frame', () => {
  const withFrame = (image: Buffer, marker: number) => {
    const copy = Buffer.from(image);
    copy[copy.indexOf(Buffer.from('ffc0', 'hex')) + 1] = marker;
    return copy;
  };
  test.each([0xc9, 0xca, 0xcb, 0xcd, 0xce, 0xcf])('%i', async (marker) => {
    await expect(ofJpeg(withFrame(await jpeg(), marker))).rejects.toMatchObject(tooCostly);
  });

  const behind = (image: Buffer, hex: string) =>
    Buffer.concat([image.subarray(0, 2), Buffer.from(hex, 'hex'), image.subarray(2)]);

  test.each([
    ['fill bytes and a marker without a length', 'ffffff01'],
    ['a restart', 'ffd0'],
    ['an end', 'ffd9'],
    ['a stuffed byte', 'ff00'],
    ['junk', '1234'],
    ['tables and an extension', 'ffc400040000ffcc0002ffc80002'],
    ['another frame in a comment', 'fffe0006ffc00000'],
    ['another frame in a table', 'ffc40006ffc00000'],
  ])('also behind %s', async (_name, hex) => {
    await expect(ofJpeg(arithmeticBomb(1))).rejects.toMatchObject(tooCostly);
    await expect(ofJpeg(behind(withFrame(await jpeg(), 0xc9), hex))).rejects.toMatchObject(tooCostly);
  });

  test('a first frame of another coding is accepted, whatever follows', async () => {
    const image = await jpeg();
    expect(await ofJpeg(image)).toEqual({ bytes: image, isHeavy: false });
    await ofJpeg(Buffer.concat([image, withFrame(image, 0xc9)]));
  });

  test('a truncated segment is left to the decoder', async () => {
    for (const hex of ['ffd8ffc4', 'ffd8ffe000', 'ffd8', 'ffd8ff', 'ffd8ffffffff', 'ffd8ffc80004ffcc0004'])
      await expect(ofJpeg(Buffer.from(hex, 'hex')), hex).rejects.toThrow(/^Input buffer/);
  });

  test('only markers count as scans', async () => {
    const comment = Buffer.concat([Buffer.from('fffe012e', 'hex'), Buffer.alloc(300, 0xda)]);
    await ofJpeg(behind(await jpeg(), comment.toString('hex')));
  });
});

test('a colour profile with processing elements is refused, others are not', async () => {
  await expect(ofPng(profileBomb(1))).rejects.toMatchObject(tooCostly);
  await ofPng(
    await sharp(await png())
      .withIccProfile('p3')
      .png()
      .toBuffer(),
  );
});

describe('only the PNG chunks that define the pixels reach the decoder', () => {
  const types = (bytes: Buffer) => {
    const found: string[] = [];
    for (let at = 8; at < bytes.length; at += 12 + bytes.readUInt32BE(at))
      found.push(bytes.toString('latin1', at + 4, at + 8));
    return found;
  };

  test('texts are dropped, also around the image', async () => {
    const [, make] = polyglots.find(([name]) => name === 'text in a PNG') ?? [];
    const sent = (await make?.()) as Buffer;
    expect(sent.toString('latin1')).toContain(MARKER);
    const { bytes } = await ofPng(Buffer.concat([sent, Buffer.from('behind')]));
    expect(types(bytes)).toEqual(['IHDR', 'IDAT', 'IEND']);
    expect(bytes.toString('latin1')).not.toContain(MARKER);
  });

  test('all chunks of pixels are kept, of others the first', async () => {
    const image = await png();
    const end = image.subarray(-12);
    const head = image.subarray(8, 33);
    const data = image.subarray(33, -12);
    const sent = Buffer.concat([image.subarray(0, 33), head, data, data, end, end]);
    expect(types((await ofPng(sent)).bytes).filter((type) => type !== 'pHYs')).toEqual([
      'IHDR',
      'IDAT',
      'IDAT',
      'IEND',
    ]);
  });

  test('a truncated image stays truncated', async () => {
    const image = await png();
    const { bytes } = await ofPng(image.subarray(0, -14));
    expect(types(bytes.subarray(0, 33))).toEqual(['IHDR']);
    expect(bytes.length).toBeLessThan(image.length - 12);
    expect(types((await ofPng(image)).bytes).at(-1)).toBe('IEND');
  });
});
