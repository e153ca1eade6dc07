import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const root = join(import.meta.dirname, '../..');
const run = promisify(execFile);

/** Builds the client package from the procedures as they are; afterwards `account-client` can be imported. */
export const buildClient = () => run('npm', ['run', 'build', '--workspace', 'account-client'], { cwd: root });

/** What the tests need of the built package, whose own types are only there once it is built. */
interface ClientPackage {
  createClient(options: ConnectOptions): unknown;
  createServiceClient(options: ConnectOptions & { token: string }): unknown;
  isServiceError(error: unknown): error is ClientError;
}

interface ConnectOptions {
  url: string;
  fetch?: typeof fetch;
  headers?: Record<string, string>;
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

type Procedure = Record<'query' | 'mutate', (input: unknown) => Promise<unknown>>;

/** The procedure of a client by its name, such as `auth.login`. */
export const procedureOf = (client: unknown, name: string) =>
  name.split('.').reduce((place, part) => (place as Record<string, unknown>)[part], client) as Procedure;
