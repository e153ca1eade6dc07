import { defineEntity, p } from '@mikro-orm/core';

/** How it came here: sent by the client to a presigned address, or made here from an image of this kind. */
export type UploadPurpose = 'direct' | 'avatar' | 'post';

/**
 * expected: an address was given out, or an image is just being stored; kept: for good; replaced: an avatar that its user
 * has exchanged; doomed: being deleted, there is no way back, and it counts no more in what its user keeps.
 */
export type UploadState = 'expected' | 'kept' | 'replaced' | 'doomed';

const UploadSchema = defineEntity({
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
 * What was declared about an object, written before anybody can store it: no object is without its row. `dueAt` is when it
 * must be looked at next, and the lease of the process that does; null while there is nothing to do.
 */
export class Upload extends UploadSchema.class {}

UploadSchema.setClass(Upload);

const UploadUsageSchema = defineEntity({
  name: 'UploadUsage',
  tableName: 'upload_usage',
  properties: {
    userId: p.string().primary(),
    used: p.bigint('number'),
    files: p.bigint('number'),
  },
});

/** Bytes and number of a user's uploads that are not doomed, changed in the transactions that change those. */
export class UploadUsage extends UploadUsageSchema.class {}

UploadUsageSchema.setClass(UploadUsage);
