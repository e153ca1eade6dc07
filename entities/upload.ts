import { defineEntity, p } from '@mikro-orm/core';

/** How it came here: sent by the client to a presigned address, or made here from an image of this kind. */
export type UploadPurpose = 'direct' | 'avatar' | 'post';

/**
 * expected: an address was given out, or an image is just being stored; kept: for good; replaced: an avatar that its user
 * has exchanged; doomed: being deleted, there is no way back.
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
 * must be looked at next, and the lease of whoever does; null once nothing is left to do.
 */
export class Upload extends UploadSchema.class {}

UploadSchema.setClass(Upload);
