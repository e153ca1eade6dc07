import type { Readable } from 'node:stream';

export interface PutAddress {
  key: string;
  contentType: string;
  /** The exact size in bytes. */
  size: number;
  expiresInSeconds: number;
}

/** A stored object: its size in bytes and its first bytes. */
export interface FoundObject {
  size: number;
  start: Buffer;
  /** Changes with the content of the key. Missing if the storage never replaces an object. */
  version?: string | undefined;
}

/**
 * Objects by key. Every call to the storage resolves, or rejects with SERVICE_UNAVAILABLE, within the time limit;
 * addresses are computed locally.
 */
export interface ObjectStorage {
  /**
   * A presigned address for a PUT of exactly this key, type and length, enforced by the storage. Some storages accept a
   * second PUT, which replaces the object.
   */
  presignPut(address: PutAddress): Promise<string>;
  /** Atomic: readers see the whole object or none. */
  put(key: string, bytes: Uint8Array, contentType: string): Promise<void>;
  /** Undefined for an unknown key. */
  find(key: string, startBytes: number): Promise<FoundObject | undefined>;
  /** Succeeds also for an unknown key. */
  delete(key: string): Promise<void>;
  /** The URL at which everyone can read the object. */
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
  modifiedAt: Date;
  /** The bytes from `start` to `end`, both included. */
  read(range: { start: number; end: number }): Readable;
  /** Closes a file that was not read. */
  close(): Promise<void>;
}

export interface ServedFiles {
  /** Rejects with FORBIDDEN, before the body is read, if the request does not match its address. */
  receive(file: IncomingFile): Promise<void>;
  open(key: string): Promise<ServedFile | undefined>;
}
