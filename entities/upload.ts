/*
 * States of an upload: `expected` is reserved, with an address given out or an image being stored; `kept` is stored for
 * good; `replaced` is an avatar that its user has exchanged; `doomed` is being deleted, irreversibly. `dueAt` is the
 * time of the next inspection, and the lease of the process that does it; null without one. `confirmedVersion` is the
 * object version that its user confirmed: no other may replace it. `size` becomes 0 when an upload that is being
 * deleted no longer counts against the quota.
 */

import { defineEntity, p } from '@mikro-orm/core';

/** The origin of the object: sent by the client to a presigned address, or converted by the service from an image. */
export type UploadPurpose = 'direct' | 'avatar' | 'post';

/** The stored states of an upload. */
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
    confirmedVersion: p.string().nullable(),
  },
});

/** The declaration of an object, inserted before the object can be stored, so that every object has a row. */
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

/** Bytes and number of a user's uploads, without those of size 0; changed in the same transactions as the uploads. */
export class UploadUsage extends UploadUsageSchema.class {}

UploadUsageSchema.setClass(UploadUsage);
