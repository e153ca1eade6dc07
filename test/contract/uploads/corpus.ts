import { randomBytes } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';
import sharp, { type Sharp } from 'sharp';

/** Generated images, valid and hostile. */

/** A word that no stored image may contain. */
export const MARKER = 'ALIEN-7f3a';

export const flat = (width: number, height: number, background = '#3366cc'): Sharp =>
  sharp({ create: { width, height, channels: 3, background } });

export const png = (width = 300, height = 200): Promise<Buffer> => flat(width, height).png().toBuffer();
export const jpeg = (width = 300, height = 200): Promise<Buffer> => flat(width, height).jpeg().toBuffer();

/** A small picture that hardly compresses: 240 kB. */
export const noise = (width = 300, height = 200): Promise<Buffer> =>
  sharp(randomBytes(4 * width * height), { raw: { width, height, channels: 4 } })
    .png()
    .toBuffer();

/** Noise, as large as a photograph. */
export const photograph = (width: number, height: number, quality = 80): Promise<Buffer> =>
  sharp({
    create: { width, height, channels: 3, background: '#808080', noise: { type: 'gaussian', mean: 128, sigma: 25 } },
  })
    .blur(1.2)
    .jpeg({ quality })
    .toBuffer();

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

interface PngHeader {
  width: number;
  height: number;
  bitDepth?: number;
  /** 0 grey, 2 RGB, 6 RGBA. */
  colorType?: number;
  interlaced?: boolean;
}

const channels: Record<number, number> = { 0: 1, 2: 3, 6: 4 };
const pngSignature = Buffer.from('89504e470d0a1a0a', 'hex');

/** A PNG with only zero pixels: large in memory, small on the wire. Extra chunks precede the pixels. */
export function emptyPng(
  { width, height, bitDepth = 8, colorType = 0, interlaced = false }: PngHeader,
  extra: Buffer[] = [],
) {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([bitDepth, colorType, 0, 0, interlaced ? 1 : 0], 8);
  const bitsPerPixel = bitDepth * (channels[colorType] ?? 1);
  const passes = interlaced ? adam7(width, height) : [[width, height] as const];
  const raw = passes
    .filter(([w, h]) => w > 0 && h > 0)
    .reduce((sum, [w, h]) => sum + (1 + Math.ceil((w * bitsPerPixel) / 8)) * h, 0);
  return Buffer.concat([
    pngSignature,
    chunk('IHDR', header),
    ...extra,
    chunk('IDAT', deflateSync(Buffer.alloc(raw), { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

const adam7 = (width: number, height: number) =>
  [
    [0, 0, 8, 8],
    [4, 0, 8, 8],
    [0, 4, 4, 8],
    [2, 0, 4, 4],
    [0, 2, 2, 4],
    [1, 0, 2, 2],
    [0, 1, 1, 2],
  ].map(([x = 0, y = 0, dx = 1, dy = 1]) => [Math.ceil((width - x) / dx), Math.ceil((height - y) / dy)] as const);

const compressedText = (bytes: number) =>
  chunk('zTXt', Buffer.concat([Buffer.from('Comment\0\0', 'latin1'), deflateSync(Buffer.alloc(bytes, 'x'))]));

const compressedProfile = (bytes: number) =>
  chunk('iCCP', Buffer.concat([Buffer.from('profile\0\0', 'latin1'), deflateSync(Buffer.alloc(bytes))]));

/** Each text decompresses to 8 MB. */
export const textBomb = (texts: number) =>
  emptyPng({ width: 64, height: 64 }, Array<Buffer>(texts).fill(compressedText(7.9e6)));

const segment = (marker: number, data: Buffer | number[]) => {
  const frame = Buffer.from([0xff, marker, 0, 0]);
  frame.writeUInt16BE(data.length + 2, 2);
  return Buffer.concat([frame, Buffer.from(data)]);
};

/** A PNG with a colour profile of many processing elements, all with the same 60 bytes. */
export function profileBomb(elements: number): Buffer {
  const table = Buffer.alloc(16 + 8 * elements);
  table.write('mpet');
  table.writeUInt32BE(0x00030003, 8);
  table.writeUInt32BE(elements, 12);
  const element = Buffer.alloc(60);
  element.write('matf');
  element.writeUInt32BE(0x00030003, 8);
  for (const i of [0, 4, 8]) element.writeFloatBE(0.9999999, 12 + 4 * i);
  for (let at = 16; at < table.length; at += 8) {
    table.writeUInt32BE(table.length, at);
    table.writeUInt32BE(element.length, at + 4);
  }
  const tag = Buffer.concat([table, element]);
  const header = Buffer.alloc(156);
  const size = header.length + tag.length;
  const put = (at: number, ...words: (number | string)[]) => {
    for (const [i, word] of words.entries()) {
      if (typeof word === 'string') header.write(word, at + 4 * i);
      else header.writeUInt32BE(word, at + 4 * i);
    }
  };
  put(0, size, 'lcms', 0x04400000, 'mntr', 'RGB ', 'XYZ ', 0x07e40001, 0x00010000, 0, 'acsp');
  put(68, 0x0000f6d6, 0x00010000, 0x0000d32d);
  // Colour management looks for A2B0 first, then uses D2B0.
  put(128, 2, 'D2B0', header.length, tag.length, 'A2B0', header.length, tag.length);
  const profile = deflateSync(Buffer.concat([header, tag]));
  return emptyPng({ width: 64, height: 64, colorType: 2 }, [
    chunk('iCCP', Buffer.concat([Buffer.from('a\0\0', 'latin1'), profile])),
  ]);
}

/**
 * A grey progressive JPEG of 4896×4896 pixels in arithmetic coding: each scan codes the last coefficient of every block
 * after 62 steps that take no bits.
 */
export function arithmeticBomb(scans: number): Buffer {
  const start =
    'ffd8ffdb0043000d090a0b0a080d0b0a0b0e0e0d0f13201513121213271c1e17202e2931302e292d2c333a4a3e333646372c2d405741464c4e525352323e5a615a50604a51524fffca000b081320132001011100ffcc00040010ffda00080101000000004bc6ffcc00041005';
  const scan =
    'ffda0008010100013f004bc6000000000001dcdc8013ba82b17800099ac0000235f80002786000000595a00136bb7f8d6e5ff172b559f870005aa60621425517d4';
  return Buffer.from(`${start}${scan.repeat(scans - 1)}ffd9`, 'hex');
}

/** A grey progressive JPEG of 24 megapixels: each scan after the first codes in some 40 bytes that nothing changes. */
export function scanBomb(scans: number): Buffer {
  const [width, height] = [6000, 4000];
  const blocks = (width / 8) * (height / 8);
  const frame = Buffer.from([8, 0, 0, 0, 0, 1, 1, 0x11, 0]);
  frame.writeUInt16BE(height, 1);
  frame.writeUInt16BE(width, 3);
  // One code of one bit: the difference 0, or a run of 16384 blocks plus the number in the next 14 bits.
  const table = (kind: number, symbol: number) => segment(0xc4, [kind, 1, ...Array<number>(15).fill(0), symbol]);
  const runs = Math.ceil(blocks / 16_384);
  const nothing = Buffer.alloc(Math.ceil((runs * 15) / 8));
  const scan = (_: unknown, i: number) =>
    Buffer.concat([segment(0xda, [1, 1, 0, 1 + (i % 63), 1 + (i % 63), 0]), nothing]);
  return Buffer.concat([
    Buffer.from('ffd8', 'hex'),
    segment(0xdb, [0, ...Array<number>(64).fill(1)]),
    segment(0xc2, frame),
    table(0, 0),
    table(0x10, 0xe0),
    segment(0xda, [1, 1, 0, 0, 0, 0]),
    Buffer.alloc(Math.ceil(blocks / 8)),
    ...Array.from({ length: scans - 1 }, scan),
    Buffer.from('ffd9', 'hex'),
  ]);
}

/** A GIF with frames of one pixel. */
function gifBomb(frames: number): Buffer {
  const frame = Buffer.from('2c0000000001000100000202440100', 'hex');
  return Buffer.concat([
    Buffer.from('GIF89a'),
    Buffer.from('0100010080000000000000ffffff', 'hex'),
    ...Array<Buffer>(frames).fill(frame),
    Buffer.from(';'),
  ]);
}

/** Cheap to send, costly to decode; all of it is refused, or converted within bounds. */
export const bombs: [name: string, make: () => Buffer, status: 200 | 400][] = [
  ['30000×30000 pixels in 1 bit', () => emptyPng({ width: 30_000, height: 30_000, bitDepth: 1 }), 400],
  ['16383×16383 pixels in 1 bit', () => emptyPng({ width: 16_383, height: 16_383, bitDepth: 1 }), 400],
  ['one row of 24 million and one pixels', () => emptyPng({ width: 24_000_001, height: 1, bitDepth: 1 }), 400],
  ['one column of 24 million pixels', () => emptyPng({ width: 1, height: 24_000_000 }), 400],
  ['one row of 16384 pixels', () => emptyPng({ width: 16_384, height: 1 }), 400],
  ['one row of 16383 pixels', () => emptyPng({ width: 16_383, height: 1 }), 200],
  ['2000 scans of 24 megapixels', () => scanBomb(2000), 400],
  ['127 scans of 24 megapixels in arithmetic coding', () => arithmeticBomb(127), 400],
  ['a colour profile of 30000 processing elements', () => profileBomb(30_000), 400],
  ['300 texts of 8 MB', () => textBomb(300), 200],
  ['60 MB of compressed text', () => emptyPng({ width: 64, height: 64 }, [compressedText(60e6)]), 200],
  ['60 MB of compressed colour profile', () => emptyPng({ width: 64, height: 64 }, [compressedProfile(60e6)]), 200],
  [
    '24 megapixels, interlaced, 16 bits, RGBA',
    () => emptyPng({ width: 6000, height: 4000, bitDepth: 16, colorType: 6, interlaced: true }),
    400,
  ],
];

const withBadSum = (image: Buffer): Buffer => {
  const copy = Buffer.from(image);
  // The checksum of the header chunk.
  copy.writeUInt32BE((copy.readUInt32BE(29) ^ 0xffff) >>> 0, 29);
  return copy;
};

/** Files by their signature: only JPEG and PNG are accepted as images. */
export const contents: Record<string, () => Promise<Buffer> | Buffer> = {
  JPEG: () => jpeg(),
  PNG: () => png(),
  GIF: () => flat(8, 8).gif().toBuffer(),
  WebP: () => flat(8, 8).webp().toBuffer(),
  AVIF: () => flat(8, 8).avif().toBuffer(),
  SVG: () => Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'),
  HTML: () => Buffer.from('<!doctype html><script>alert(1)</script>'),
  PDF: () => Buffer.from('%PDF-1.7\n1 0 obj'),
  'a program': () => Buffer.from('7f454c460201010000000000', 'hex'),
  'a GIF of 12000 frames': () => gifBomb(12_000),
};

/** Files with the signature of an image, but invalid. */
export const impostors: [name: string, make: () => Buffer | Promise<Buffer>, contentType: string][] = [
  ['nothing', () => Buffer.alloc(0), 'image/png'],
  ['three bytes', () => Buffer.from('89504e', 'hex'), 'image/png'],
  ['a signature and junk', () => Buffer.concat([pngSignature, Buffer.alloc(500, 7)]), 'image/png'],
  [
    'a JPEG signature and junk',
    () => Buffer.concat([Buffer.from('ffd8ffe0', 'hex'), Buffer.alloc(500, 7)]),
    'image/jpeg',
  ],
  ['half a JPEG', async () => (await photograph(400, 300)).subarray(0, 4000), 'image/jpeg'],
  [
    'half a PNG',
    async () => (await photograph(400, 300).then((image) => sharp(image).png().toBuffer())).subarray(0, 4000),
    'image/png',
  ],
  ['a PNG with a bad checksum', async () => withBadSum(await png()), 'image/png'],
];

/** The P3 profile that the library embeds. */
async function profileP3(): Promise<Buffer> {
  const { icc } = await sharp(await flat(8, 8).withIccProfile('p3').png().toBuffer()).metadata();
  if (!icc) throw new Error('no profile was embedded');
  return icc;
}

/** Valid images with extra data. */
export const polyglots: [name: string, make: () => Promise<Buffer>, contentType: string][] = [
  [
    'a page behind a JPEG',
    async () => Buffer.concat([await jpeg(), Buffer.from(`<script>${MARKER}</script>`)]),
    'image/jpeg',
  ],
  [
    'a script in a JPEG comment',
    async () => {
      const image = await jpeg();
      const text = Buffer.from(`<script>${MARKER}</script>`);
      const comment = Buffer.from([0xff, 0xfe, 0, text.length + 2]);
      return Buffer.concat([image.subarray(0, 2), comment, text, image.subarray(2)]);
    },
    'image/jpeg',
  ],
  [
    'EXIF with artist and place',
    () =>
      flat(300, 200)
        .withExif({
          IFD0: { Artist: MARKER, Copyright: MARKER },
          IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '51/1 30/1 0/1' },
        })
        .jpeg()
        .toBuffer(),
    'image/jpeg',
  ],
  [
    'XMP',
    () => flat(300, 200).withXmp(`<x:xmpmeta xmlns:x="adobe:ns:meta/">${MARKER}</x:xmpmeta>`).png().toBuffer(),
    'image/png',
  ],
  [
    'a colour profile',
    async () => {
      const profile = Buffer.concat([await profileP3(), Buffer.from(MARKER)]);
      profile.writeUInt32BE(profile.length, 0);
      const data = Buffer.concat([Buffer.from('a\0\0', 'latin1'), deflateSync(profile)]);
      return emptyPng({ width: 64, height: 64, colorType: 2 }, [chunk('iCCP', data)]);
    },
    'image/png',
  ],
  [
    'text in a PNG',
    async () => emptyPng({ width: 64, height: 64 }, [chunk('tEXt', Buffer.from(`Comment\0${MARKER}`, 'latin1'))]),
    'image/png',
  ],
  [
    'an archive behind a PNG',
    async () => Buffer.concat([await png(), Buffer.from(`PK\x03\x04${MARKER}`, 'latin1')]),
    'image/png',
  ],
];
