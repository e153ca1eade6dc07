/** A type for direct uploads. UPLOAD_TYPES selects from these. */
interface FileType {
  extension: string;
  /**
   * True if a file that starts with these bytes can be of this type. Lenient: it must never refuse a file of the
   * declared type.
   */
  matches(start: Buffer): boolean;
}

/** The number of leading bytes that signatures need. */
export const START_BYTES = 1024;

const startsWith =
  (...signatures: string[]) =>
  (start: Buffer) =>
    signatures.some((hex) => start.subarray(0, hex.length / 2).toString('hex') === hex);

const textAt = (start: Buffer, from: number, to: number) => start.toString('latin1', from, to);

/** ISO/IEC 14496-12 section 4.3: the brands in the file type box at the start of the file; empty without that box. */
function brands(start: Buffer): string[] {
  if (textAt(start, 4, 8) !== 'ftyp') return [];
  const end = Math.min(start.readUInt32BE(0), start.length);
  const found = [textAt(start, 8, 12)];
  for (let at = 16; at + 4 <= end; at += 4) found.push(textAt(start, at, at + 4));
  return found;
}

/** The boxes that a video may begin with; older files have no `ftyp`. */
const firstBoxes = new Set(['ftyp', 'styp', 'moov', 'mdat', 'free', 'skip', 'wide']);

const types = {
  'image/jpeg': { extension: 'jpg', matches: startsWith('ffd8ff') },
  'image/png': { extension: 'png', matches: startsWith('89504e47') },
  'image/webp': {
    extension: 'webp',
    matches: (start) => textAt(start, 0, 4) === 'RIFF' && textAt(start, 8, 12) === 'WEBP',
  },
  'image/gif': { extension: 'gif', matches: startsWith('474946383761', '474946383961') },
  'image/avif': {
    extension: 'avif',
    matches: (start) => brands(start).some((brand) => /^(?:avi[fs]|mi[fa][1f])$/.test(brand)),
  },
  // Readers accept the header anywhere in the first kilobyte, and writers rely on it.
  'application/pdf': { extension: 'pdf', matches: (start) => start.includes('%PDF-') },
  'video/mp4': { extension: 'mp4', matches: (start) => firstBoxes.has(textAt(start, 4, 8)) },
  'video/webm': { extension: 'webm', matches: startsWith('1a45dfa3') },
  'application/zip': { extension: 'zip', matches: startsWith('504b0304', '504b0506', '504b0708') },
} as const satisfies Record<string, FileType>;

export type UploadType = keyof typeof types;

export const uploadTypes = Object.keys(types) as UploadType[];

export const defaultUploadTypes = [
  'image/jpeg',
  'image/png',
  'image/webp',
  'image/gif',
  'image/avif',
  'application/pdf',
  'video/mp4',
] as const satisfies UploadType[];

export const isUploadType = (text: string): text is UploadType => Object.hasOwn(types, text);

export const extensionOf = (type: UploadType): string => types[type].extension;

/** The type of a stored name. The service generates the names, so their extensions are right. */
export const typeOfName = (name: string): UploadType | undefined =>
  uploadTypes.find((type) => name.endsWith(`.${types[type].extension}`));

/** True if a file that starts with these bytes (START_BYTES, or all if it is shorter) can be of the type. */
export const matchesSignature = (type: UploadType, start: Buffer): boolean => types[type].matches(start);
