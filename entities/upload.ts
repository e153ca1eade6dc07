/*
 * States of an upload: `expected` is reserved, with an address given out or an image being stored; `kept` is stored for
 * good; `replaced` is an avatar that its user has exchanged; `doomed` is being deleted, irreversibly. `dueAt` is the
 * time of the next inspection, and the lease of the process that does it; null without one. `confirmedVersion` is the
 * object version that its user confirmed: no other may replace it. `size` becomes 0 when an upload that is being
 * deleted no longer counts against the quota, and so does `variantsSize`, the bytes of its variants.
 *
 * `width`, `height` and `placeholder` (a ThumbHash) describe a converted image; its `variants` are smaller pictures of it.
 * `variantsFor` are the widths of IMAGE_SIZES that they were made for; null if they never were. `variantsUntil` is the lease
 * of the process that is making them, that moves a file which the scanner has looked at, or that stores a public copy: until
 * then it may store objects.
 *
 * With a scanner, a direct upload is `pending` from its declaration on: its object is under `pending/`, with a row in
 * `upload_variants`, and is moved once it may be given out. `infected` is in quarantine: the object stays there. `scan`
 * is null for a file that need not be looked at; `finding` is the scanner's name of what it found.
 *
 * `multipartId` is the storage's id of a file that is sent in parts; null if it is not. It is empty before the storage has
 * given an id, and after the parts of a deleted upload were removed: parts that were being sent then may still arrive.
 */

import { defineEntity, p } from '@mikro-orm/core';

/** The origin of the object: sent by the client to a presigned address, or converted by the service from an image. */
export type UploadPurpose = 'direct' | 'avatar' | 'post';

/** The stored states of an upload. */
export type UploadState = 'expected' | 'pending' | 'kept' | 'replaced' | 'infected' | 'doomed';

/**
 * `looking`: the scanner is looking at it, or a process that asked it has crashed. `allowed`: given out unscanned, because
 * the scanner was away and SCAN_DOWN is `allow`.
 */
export type Scan = 'due' | 'looking' | 'clean' | 'allowed' | 'infected';

export const UploadSchema = defineEntity({
  name: 'Upload',
  tableName: 'uploads',
  properties: {
    objectKey: p.string().primary(),
    userId: p.string(),
    purpose: p.string().$type<UploadPurpose>(),
    contentType: p.string(),
    size: p.bigint('number'),
    state: p.string().$type<UploadState>(),
    expiresAt: p.bigint('number'),
    dueAt: p.bigint('number').nullable(),
    createdAt: p.bigint('number'),
    confirmedVersion: p.string().nullable(),
    width: p.integer().nullable(),
    height: p.integer().nullable(),
    placeholder: p.string().nullable(),
    variants: p.string().nullable(),
    variantsSize: p.bigint('number'),
    variantsFor: p.string().nullable(),
    variantsUntil: p.bigint('number').nullable(),
    multipartId: p.string().nullable(),
    scan: p.string().$type<Scan>().nullable(),
    finding: p.string().nullable(),
  },
});

/** The declaration of an object, inserted before the object can be stored, so that every object has a row. */
export class Upload extends UploadSchema.class {}

UploadSchema.setClass(Upload);

export const UploadVariantSchema = defineEntity({
  name: 'UploadVariant',
  tableName: 'upload_variants',
  properties: {
    objectKey: p.string().primary(),
    uploadKey: p.string().nullable(),
  },
});

/**
 * An object that may exist beside the one of its upload: inserted before it can be stored, deleted after it. `uploadKey` is
 * null if the version before, which does not know these objects, has deleted the upload.
 */
export class UploadVariant extends UploadVariantSchema.class {}

UploadVariantSchema.setClass(UploadVariant);

/** A smaller picture of an image. */
export interface Variant {
  width: number;
  height: number;
  bytes: number;
}

/** The key of a variant, from that of its image: `uploads/….webp` becomes `uploads/…_320.webp`. */
export const variantKey = (objectKey: string, { width }: Pick<Variant, 'width'>): string =>
  objectKey.replace(/(?=\.\w+$)/, `_${width}`);

/** The key of the image, from that of a variant or its own. */
export const imageKeyOf = (objectKey: string): string => objectKey.replace(/_\d+(?=\.\w+$)/, '');

type StoredVariant = [width: number, height: number, bytes: number];

/** The form of `variants` in the database. */
export const storedVariants = (variants: readonly Variant[]): string =>
  JSON.stringify(variants.map(({ width, height, bytes }): StoredVariant => [width, height, bytes]));

export const variantsIn = (stored: string | null | undefined): Variant[] =>
  stored ? (JSON.parse(stored) as StoredVariant[]).map(([width, height, bytes]) => ({ width, height, bytes })) : [];

/** The form of the variants of an avatar in the row of its user: `<key of the image> <variants>`. */
export const storedAvatarVariants = (objectKey: string, variants: string | null | undefined): string | null =>
  variants && variants !== '[]' ? `${objectKey} ${variants}` : null;

/** The variants of the avatar at this URL, with theirs. Undefined without any, or if `stored` is about another image. */
export function avatarVariantsIn(
  avatar: string | null,
  stored: string | null | undefined,
): (Variant & { url: string })[] | undefined {
  if (!avatar || !stored) return undefined;
  const [objectKey = '', variants] = stored.split(' ');
  const { origin = '', pathname = '' } = URL.parse(avatar) ?? {};
  const base = `${origin}${pathname.slice(0, pathname.lastIndexOf('/uploads/') + 1)}`;
  if (imageKeyOf(`${origin}${pathname}`) !== base + objectKey) return undefined;
  return variantsIn(variants).map((variant) => ({ ...variant, url: base + variantKey(objectKey, variant) }));
}

export const UploadUsageSchema = defineEntity({
  name: 'UploadUsage',
  tableName: 'upload_usage',
  properties: {
    userId: p.string().primary(),
    used: p.bigint('number'),
    files: p.bigint('number'),
  },
});

/** Bytes and number of a user's uploads, without those of size 0; changed in the same transactions as the uploads. */
export class UploadUsage extends UploadUsageSchema.class {}

UploadUsageSchema.setClass(UploadUsage);
