import type { Readable } from 'node:stream';

export interface PutAddress {
  key: string;
  contentType: string;
  /** The exact size in bytes. */
  size: number;
  expiresInSeconds: number;
}

export interface GetAddress {
  key: string;
  expiresInSeconds: number;
  /** The name under which browsers save the file; without one they may show it. */
  download?: string | undefined;
}

/** A file that is sent in parts. `id` is the answer of `startParts`. */
interface PartedFile {
  key: string;
  id: string;
}

export interface PartAddress extends PartedFile {
  /** From 1. */
  part: number;
  /** Where the part begins in the file, and its exact size in bytes. */
  start: number;
  size: number;
  expiresInSeconds: number;
}

export interface StoredPart {
  part: number;
  size: number;
  /** Changes with the content of the part. */
  version: string;
}

/** Everyone can read the objects of one prefix; those of the other are read at presigned addresses. */
export const prefixes = { public: 'uploads/', private: 'private/' } as const;

export type Visibility = keyof typeof prefixes;

/** Files wait here for the scanner, also public ones: nobody can read them, and no address leads to them. */
export const PENDING = 'pending/';

/** `private` for a file that waits for the scanner too. */
export const visibilityOf = (key: string): Visibility =>
  key.startsWith(prefixes.private) || key.startsWith(PENDING) ? 'private' : 'public';

/** Contents of a key never change; addresses of private ones do. */
export const cacheControlOf = (key: string): string =>
  visibilityOf(key) === 'private' ? 'private, no-store' : 'public, max-age=31536000, immutable';

/** RFC 6266: the header Content-Disposition of a file that is saved under this name. */
export function attachmentOf(name: string): string {
  if (/^[\w. -]+$/.test(name)) return `attachment; filename="${name}"`;
  const encoded = encodeURIComponent(name.toWellFormed());
  return `attachment; filename*=UTF-8''${encoded.replace(/['()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)}`;
}

/** Files that are sent in parts. A part does not change the object of its key; all parts together become the object. */
export interface PartStorage {
  /** Resolves to the id of the file. */
  startParts(key: string, contentType: string): Promise<string>;
  /** A presigned address for a PUT of exactly this part and length, until it expires or the parts are deleted. */
  presignPart(address: PartAddress): Promise<string>;
  /** Undefined if the parts were joined or deleted. */
  storedParts(file: PartedFile): Promise<StoredPart[] | undefined>;
  /** Atomic. Resolves to false, without effect, if a part has changed, or the parts were joined or deleted. */
  joinParts(file: PartedFile, parts: readonly StoredPart[]): Promise<boolean>;
  /** Deletes all parts of this key that were not joined; a part that is being sent may still arrive. */
  deleteParts(key: string): Promise<void>;
}

/** A stored object: its size in bytes and its first bytes. */
export interface FoundObject {
  size: number;
  start: Buffer;
  /** Changes with the content of the key. Missing if the storage never replaces an object. */
  version?: string | undefined;
}

/** An object that is being read. Read it to its end, or destroy it. */
export interface OpenObject {
  size: number;
  bytes: Readable;
  /** Changes with the content of the key. */
  version: string | undefined;
}

/** A copy in the background, which may take minutes, of exactly this version. */
export interface Transfer {
  version: string | undefined;
}

/**
 * Objects by key. Every call to the storage resolves, or rejects with SERVICE_UNAVAILABLE, within the time limit;
 * addresses are computed locally.
 */
export interface ObjectStorage extends PartStorage {
  /**
   * A presigned address for a PUT of exactly this key, type and length, enforced by the storage. Some storages accept a
   * second PUT, which replaces the object.
   */
  presignPut(address: PutAddress): Promise<string>;
  /** A presigned address for GETs of exactly this key, until it expires. */
  presignGet(address: GetAddress): Promise<string>;
  /**
   * Atomic, like `put`; replaces an object. May take half a minute, with `transfer` minutes. Resolves to false for an
   * unknown key, and if the object has another version than `transfer`.
   */
  copy(from: string, to: string, contentType: string, transfer?: Transfer): Promise<boolean>;
  /** For a background job: reading may take minutes. Undefined for an unknown key. */
  open(key: string): Promise<OpenObject | undefined>;
  /** Atomic: readers see the whole object or none. */
  put(key: string, bytes: Uint8Array, contentType: string): Promise<void>;
  /** Undefined for an unknown key. */
  find(key: string, startBytes: number): Promise<FoundObject | undefined>;
  /** Succeeds also for an unknown key. */
  delete(key: string): Promise<void>;
  /** The URL at which everyone can read the object. Empty for a private one. */
  publicUrl(key: string): string;
  /** Ensures that the storage is usable. Rejects with ConfigError if only an operator can fix it. */
  prepare(): Promise<void>;
  /** For a storage without its own server: how the service serves its files and receives uploads. */
  served?: ServedFiles;
  close(): void;
}

export interface IncomingFile {
  key: string;
  query: URLSearchParams;
  contentType: string;
  /** Undefined if the sender did not state it. */
  contentLength: number | undefined;
  body: Readable;
}

export interface ServedFile {
  size: number;
  /** The name under which the browser saves it, if the address has one. */
  download: string | undefined;
  modifiedAt: Date;
  /** The bytes from `start` to `end`, both included. */
  read(range: { start: number; end: number }): Readable;
  /** Closes a file that was not read. */
  close(): Promise<void>;
}

export interface ServedFiles {
  /** Rejects with FORBIDDEN, before the body is read, if the request does not match its address. */
  receive(file: IncomingFile): Promise<void>;
  /** Rejects with FORBIDDEN if the address of a private file does not match its signature, or has expired. */
  open(key: string, query: URLSearchParams): Promise<ServedFile | undefined>;
}
