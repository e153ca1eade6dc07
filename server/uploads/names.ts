import type { Upload } from '../../entities/index.ts';
import { ServiceError } from '../errors.ts';
import { PENDING, prefixes, type Visibility } from '../parts/object-storage/contract.ts';

/** The name of an upload: its key without the prefix. Names are unique: they contain a random UUID. */
export const nameOf = (objectKey: string): string => objectKey.slice(objectKey.indexOf('/') + 1);

/** The keys that an upload of this name may have. */
export const keysOf = (name: string): string[] => Object.values(prefixes).map((prefix) => prefix + name);

export const keyIn = (visibility: Visibility, name: string): string => prefixes[visibility] + name;

/** Where the object of an upload is while it waits for the scanner. */
export const pendingKeyOf = (objectKey: string): string => PENDING + nameOf(objectKey);

/** The key to which the object of an upload is sent, whole or in parts. */
export const sentTo = ({ objectKey, scan }: Pick<Upload, 'objectKey' | 'scan'>): string =>
  scan === null ? objectKey : pendingKeyOf(objectKey);

export const notFound = () => new ServiceError('NOT_FOUND', { message: 'Upload not found' });
