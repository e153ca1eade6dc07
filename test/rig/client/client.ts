import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const root = join(import.meta.dirname, '../../..');
const run = promisify(execFile);

/** Builds the client package from the current procedures; afterwards `account-client` can be imported. */
export const buildClient = () => run('npm', ['run', 'build', '--workspace', 'account-client'], { cwd: root });

/** The part of the built package that tests use; its own types exist only after the build. */
interface ClientPackage {
  createClient(options: ConnectOptions): unknown;
  createServiceClient(options: ConnectOptions & { token: string }): unknown;
  followEvents(client: unknown, options: FollowOptions): AsyncGenerator<{ number: number; type: string; data: object }>;
  isServiceError(error: unknown): error is ClientError;
  uploadFile(client: unknown, file: File, options?: UploadOptions): Promise<{ key: string; url: string; size: number }>;
  verifyWebhook(request: Request, secret: string): Promise<unknown>;
  WebhookError: new (message: string) => Error;
}

interface ConnectOptions {
  url: string;
  fetch?: typeof fetch;
  headers?: Record<string, string>;
  onChallenge?(solving: Promise<void>): void;
  solveChallenges?: boolean;
}

interface FollowOptions {
  after: number;
  types?: string[];
  signal?: AbortSignal;
}

export interface UploadOptions {
  visibility?: 'public' | 'private';
  onProgress?(progress: { loaded: number; total: number }): void;
  onStart?(unfinished: object): void;
  resume?: object;
  signal?: AbortSignal;
  fetch?: typeof fetch;
}

interface ClientError extends Error {
  code: string;
  status: number;
  details: Record<string, { message: string; rule: string }> | undefined;
  retryAfter: number | undefined;
}

export async function loadClient(): Promise<ClientPackage> {
  const name: string = 'account-client';
  return import(name);
}

type Procedure = Record<'query' | 'mutate', (input: unknown, options?: { signal?: AbortSignal }) => Promise<unknown>>;

/** The procedure of a client by its name, such as `auth.login`. */
export const procedureOf = (client: unknown, name: string) =>
  name.split('.').reduce((place, part) => (place as Record<string, unknown>)[part], client) as Procedure;
