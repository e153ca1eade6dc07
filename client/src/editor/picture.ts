import { AVATAR_SIDE, MAX_BYTES, MAX_PIXELS, POST_SIDE, TAKEN_TYPES } from './limits.ts';
import { isCentre, type Size, type Square } from './square.ts';

/** An image that the browser has decoded: upright, in the colours of screens. */
export interface Picture {
  /** As chosen. */
  file: File;
  /** `close()` frees its memory. */
  bitmap: ImageBitmap;
}

const PNG = { type: 'image/png', quality: undefined };
/** From the best; below the last a smaller picture looks better. */
const JPEGS = [0.9, 0.75, 0.6].map((quality) => ({ type: 'image/jpeg', quality }));

/**
 * Decodes an image of any type that the browser knows, such as HEIC in Safari. Undefined if it cannot, or if it alters what
 * pages read from a canvas (protection against fingerprinting): then send the file as it is.
 */
export async function openPicture(file: File): Promise<Picture | undefined> {
  const bitmap = await decoded(file);
  if (!bitmap || readsFaithfully()) return bitmap && { file, bitmap };
  bitmap.close();
  return undefined;
}

/** With `try`, because old browsers have no such function. */
async function decoded(file: File): Promise<ImageBitmap | undefined> {
  try {
    return await createImageBitmap(file);
  } catch {
    return undefined;
  }
}

/**
 * A square of a picture, for `uploadImage` as `avatar`: a JPEG or PNG of at most `side` pixels, never larger than the chosen
 * file. If the service would cut the same square and nothing is saved, it is the chosen file.
 */
export const cropPicture = (picture: Picture, square: Square, side = AVATAR_SIDE): Promise<File> => {
  const part = { x: square.x, y: square.y, width: square.side, height: square.side };
  return encoded(picture, part, side, isTaken(picture) && isCentre(picture.bitmap, square));
};

/**
 * An image that fits into a square of `side` pixels, for `uploadImage` as `post`: a JPEG or PNG, never larger than the chosen
 * file. It is the chosen file if that is small enough, or cannot be decoded.
 */
export async function scalePicture(file: File, side = POST_SIDE): Promise<File> {
  const picture = await openPicture(file);
  if (!picture) return file;
  const { width, height } = picture.bitmap;
  try {
    if (isTaken(picture) && Math.max(width, height) <= side) return file;
    return await encoded(picture, { x: 0, y: 0, width, height }, side, isTaken(picture));
  } finally {
    picture.bitmap.close();
  }
}

const isTaken = ({ file, bitmap: { width, height } }: Picture): boolean =>
  TAKEN_TYPES.includes(file.type) && file.size <= MAX_BYTES && width * height <= MAX_PIXELS;

/** A rectangle of a picture, in its pixels. */
type Part = Size & Pick<Square, 'x' | 'y'>;

/** The best encoding of a part that is not larger than the file; `orFile`: the file, if the best is larger. */
async function encoded({ file, bitmap }: Picture, part: Part, side: number, orFile: boolean): Promise<File> {
  const most = Math.min(file.size, MAX_BYTES);
  const longest = Math.max(part.width, part.height);
  for (let length = Math.min(side, longest); length >= 1; length *= Math.SQRT1_2) {
    const canvas = drawn(bitmap, part, length / longest);
    const encodings = isTransparent(file, canvas) ? [PNG] : JPEGS;
    for (const { type, quality } of encodings) {
      const blob = await blobOf(canvas, type, quality);
      if (blob && blob.size <= most) return new File([blob], named(file, blob), { type: blob.type });
      if (orFile) return file;
    }
  }
  return file;
}

function drawn(bitmap: ImageBitmap, { x, y, width, height }: Part, scale: number): HTMLCanvasElement {
  const canvas = canvasOf(Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale)));
  const context = contextOf(canvas);
  context.imageSmoothingQuality = 'high';
  context.drawImage(bitmap, x, y, width, height, 0, 0, canvas.width, canvas.height);
  return canvas;
}

/** JPEG has no transparency; for anything else it takes fewer bytes than the PNG of browsers. */
function isTransparent(file: File, canvas: HTMLCanvasElement): boolean {
  if (file.type === 'image/jpeg') return false;
  const { data } = contextOf(canvas).getImageData(0, 0, canvas.width, canvas.height);
  return data.some((value, at) => at % 4 === 3 && value < 255);
}

const blobOf = (canvas: HTMLCanvasElement, type: string, quality?: number): Promise<Blob | null> =>
  new Promise((resolve) => {
    canvas.toBlob(resolve, type, quality);
  });

const named = ({ name }: File, { type }: Blob): string =>
  `${name.replace(/\.\w+$/, '')}.${type === 'image/png' ? 'png' : 'jpg'}`;

/** False if the browser answers with other pixels than were drawn. A few units of noise are not seen. */
function readsFaithfully(): boolean {
  const context = contextOf(canvasOf(8, 8));
  context.fillStyle = 'rgb(64 128 192)';
  context.fillRect(0, 0, 8, 8);
  const expected = [64, 128, 192, 255];
  return context.getImageData(0, 0, 8, 8).data.every((value, at) => Math.abs(value - (expected[at % 4] ?? 0)) < 8);
}

const canvasOf = (width: number, height: number): HTMLCanvasElement =>
  Object.assign(document.createElement('canvas'), { width, height });

function contextOf(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const context = canvas.getContext('2d');
  if (!context) throw new Error('The browser has no memory left for the picture');
  return context;
}
