/*
 * Uploads in parts. The row holds the storage's id of the multipart upload. It is empty while the storage is asked for
 * one, so that parts are looked for after a crash too.
 */

import type { UploadState } from '../../entities/index.ts';
import { invalidField } from '../errors.ts';
import type { ObjectStorage, StoredPart } from '../parts/object-storage/contract.ts';
import { LEASE_MS, type UploadLeases } from './leases.ts';
import { notFound, sentTo } from './names.ts';
import type { Records, UploadRecord } from './records.ts';
import { msUntilNextCheck, msUntilNextLook, PARTS_CHECK_MS, PARTS_MS } from './schedule.ts';

const MEGABYTE = 1024 ** 2;
/** Files up to this size are sent in one piece. */
const MAX_WHOLE_BYTES = 100 * MEGABYTE;
/** S3 takes no smaller part but the last; a broken connection costs no more than a part. */
const MIN_PART_BYTES = 5 * MEGABYTE;
/** Less than S3's 10000: storages list so many at once. */
const MAX_PARTS = 1000;
const ADDRESS_SECONDS = 300;

/** How a file is divided: the last part is what remains. Unfinished uploads depend on it. */
export interface Division {
  size: number;
  count: number;
}

/** Undefined for a file that is sent in one piece. */
export function divide(bytes: number): Division | undefined {
  if (bytes <= MAX_WHOLE_BYTES) return undefined;
  const size = Math.max(MIN_PART_BYTES, Math.ceil(bytes / MAX_PARTS / MEGABYTE) * MEGABYTE);
  return { size, count: Math.ceil(bytes / size) };
}

interface PartAddresses {
  addresses: { part: number; size: number; presignedUrl: string }[];
  /** Seconds. */
  expiresIn: number;
}

interface Parts {
  objects: ObjectStorage;
  records: Records;
  leases: UploadLeases;
}

export function createParts({ objects, records, leases }: Parts) {
  /** Rejects with VALIDATION_FAILED unless the file is sent in parts and unfinished, with NOT_FOUND if it has expired. */
  const requireDivision = (upload: UploadRecord): Division => {
    const { size, state, scan, confirmedVersion, expiredForMs, variantsUntil } = upload;
    const division = divide(size);
    if (!division) throw invalidField('key', 'not_in_parts', 'This file is sent in one piece');
    if (!isOpen(state) || scan === 'looking' || confirmedVersion !== null) throw complete();
    // Parts sent to the key of a public copy would replace what the scanner saw.
    const isCopy = state === 'expected' && variantsUntil !== null;
    if (isCopy || expiredForMs >= PARTS_MS) throw notFound();
    return division;
  };

  const idOf = async (upload: UploadRecord): Promise<string> => {
    const { objectKey, contentType, multipartId } = upload;
    if (multipartId) return multipartId;
    if (await records.startParts(objectKey, PARTS_CHECK_MS)) {
      const id = await objects.startParts(sentTo(upload), contentType);
      if (await records.nameParts(objectKey, id)) return id;
    }
    // Another call was faster: what was started here is deleted with the rest. Or the file is being deleted.
    const current = await records.find(objectKey);
    if (current?.scan === 'looking') throw complete();
    if (current?.multipartId && isOpen(current.state)) return current.multipartId;
    await objects.deleteParts(sentTo(upload));
    throw notFound();
  };

  return {
    /** Addresses that accept one part each, of exactly its size. */
    async presign(
      upload: UploadRecord,
      parts: readonly number[],
      countStart: () => Promise<unknown>,
    ): Promise<PartAddresses> {
      const { size, count } = requireDivision(upload);
      if (parts.some((part) => part > count)) throw invalidField('parts', 'too_large', `Must be at most ${count}`);
      if (!upload.multipartId) await countStart();
      // It was sent whole, or its parts were joined.
      if (upload.multipartId === null && (await objects.find(sentTo(upload), 1))?.size === upload.size)
        throw complete();
      const file = { key: sentTo(upload), id: await idOf(upload) };
      const addresses = parts.map(async (part) => {
        const start = (part - 1) * size;
        const address = { ...file, part, start, size: Math.min(size, upload.size - start) };
        const presignedUrl = await objects.presignPart({ ...address, expiresInSeconds: ADDRESS_SECONDS });
        return { part, size: address.size, presignedUrl };
      });
      return { addresses: await Promise.all(addresses), expiresIn: ADDRESS_SECONDS };
    },

    /** How the file is divided, and which parts have arrived. */
    async stored(upload: UploadRecord): Promise<Division & { stored: number[] }> {
      const division = requireDivision(upload);
      const { multipartId: id } = upload;
      const found = id ? await objects.storedParts({ key: sentTo(upload), id }) : [];
      return { ...division, stored: (found ?? []).map(({ part }) => part).sort((a, b) => a - b) };
    },

    /**
     * Resolves to true if this call has made the object. Rejects with VALIDATION_FAILED, and joins nothing, if a part is
     * missing.
     */
    async join(upload: UploadRecord): Promise<boolean> {
      const { multipartId: id, size, state } = upload;
      if (!isOpen(state) || id === null) return false;
      const key = sentTo(upload);
      const parts = id ? await objects.storedParts({ key, id }) : [];
      // They were joined, by a call that got no answer.
      if (!parts) return true;
      const missing = missingOf(parts, size);
      if (missing.length > 0) throw invalidField('parts', 'missing', `Not yet uploaded: ${missing.join(', ')}`);
      return objects.joinParts({ key, id }, parts);
    },

    /** After the parts were joined: from here on the upload is one that was sent in one piece. */
    async finish(upload: UploadRecord): Promise<void> {
      await objects.deleteParts(sentTo(upload));
      const whole = { ...upload, multipartId: null };
      // `confirm` has scheduled the scan, which may be running.
      if (upload.state === 'pending')
        return leases.bringForward(whole, Math.max(LEASE_MS, msUntilNextLook(whole)), { multipart_id: null });
      await leases.postpone(whole, Math.max(0, msUntilNextCheck(whole)), { multipart_id: null });
    },
  };
}

const complete = () => invalidField('key', 'complete', 'This file is complete');

/** True until the file is stored, or waits for its deletion. */
const isOpen = (state: UploadState): boolean => state === 'expected' || state === 'pending';

/** The numbers of parts that are not there in their size. */
function missingOf(stored: readonly StoredPart[], bytes: number): number[] {
  const { size, count } = divide(bytes) ?? { size: bytes, count: 1 };
  const sizes = new Map(stored.map((each) => [each.part, each.size]));
  return Array.from({ length: count }, (_, i) => i + 1).filter(
    (part) => sizes.get(part) !== Math.min(size, bytes - (part - 1) * size),
  );
}
