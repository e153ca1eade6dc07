import { defineEntity, p } from '@mikro-orm/core';

/**
 * How the object came: sent by the client to a presigned address, or made by the service from an image of this kind.
 */
export type UploadPurpose = 'direct' | 'avatar' | 'post';

/**
 * As running systems have stored them. expected: reserved, an address was given out or an image is being stored; kept:
 * committed, stored for good; replaced: an avatar that its user has exchanged; doomed: its deletion has started and
 * cannot be undone.
 */
export type UploadState = 'expected' | 'kept' | 'replaced' | 'doomed';

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
  },
});

/**
 * The declaration of an object, written before the object can be stored: no object is without its row. `dueAt` is when
 * the object must be inspected next, and the lease of the process that inspects it; null while there is nothing to do.
 * `size` becomes 0 when an upload that is being deleted no longer counts against its user's quota.
 */
export class Upload extends UploadSchema.class {}

UploadSchema.setClass(Upload);

export const UploadUsageSchema = defineEntity({
  name: 'UploadUsage',
  tableName: 'upload_usage',
  properties: {
    userId: p.string().primary(),
    used: p.bigint('number'),
    files: p.bigint('number'),
  },
});

/** Bytes and number of a user's uploads, those of size 0 left out; changed in the same transactions as the uploads. */
export class UploadUsage extends UploadUsageSchema.class {}

UploadUsageSchema.setClass(UploadUsage);
