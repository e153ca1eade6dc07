import type { Readable } from 'node:stream';

export interface PutAddress {
  key: string;
  contentType: string;
  /** Bytes, exactly. */
  size: number;
  expiresInSeconds: number;
}

/** A stored object: its size in bytes and the bytes it starts with. */
export interface FoundObject {
  size: number;
  start: Buffer;
}

/**
 * Objects by key. Every call to the storage answers or rejects with SERVICE_UNAVAILABLE within the time limit; making
 * addresses is computation only.
 */
export interface ObjectStorage {
  /** An address for one PUT of just this key, type and length: the storage itself refuses anything else. */
  presignPut(address: PutAddress): Promise<string>;
  /** Stores the whole object, or nothing that is visible. */
  put(key: string, bytes: Uint8Array, contentType: string): Promise<void>;
  /** Undefined where there is no such object. */
  find(key: string, startBytes: number): Promise<FoundObject | undefined>;
  /** No error where there is no such object. */
  delete(key: string): Promise<void>;
  /** The address at which everyone can read the object. */
  publicUrl(key: string): string;
  /** Makes sure that there is a place to store in. Rejects with ConfigError where only an operator can help. */
  prepare(): Promise<void>;
  /** For a storage without a server of its own: how the service serves its files and receives uploads. */
  served?: ServedFiles;
  close(): void;
}

export interface IncomingFile {
  key: string;
  query: URLSearchParams;
  contentType: string;
  /** Undefined where the sender did not state it. */
  contentLength: number | undefined;
  body: Readable;
}

export interface ServedFile {
  size: number;
  modifiedAt: Date;
  /** The bytes from `start` to `end`, both included. */
  read(range: { start: number; end: number }): Readable;
  /** Closes a file that is not read. */
  close(): Promise<void>;
}

export interface ServedFiles {
  /** Rejects with FORBIDDEN, before the body is read, a request that the address was not made for. */
  receive(file: IncomingFile): Promise<void>;
  open(key: string): Promise<ServedFile | undefined>;
}
