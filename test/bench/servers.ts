import { join } from 'node:path';
import type { DatabaseView } from '../rig/observe/database-view.ts';
import type { SmtpSink } from '../rig/servers/smtp.ts';
import { call } from './client.ts';
import type { Parts } from './parts.ts';
import { addPeople, PASSWORD, personEmail } from './people.ts';

export interface Server {
  url: string;
  pid: number;
}

/** The production service and its comparisons, all warm; only one is loaded at a time. */
export interface Servers {
  service: Server;
  /** Hand-written reads on the service's data. */
  koa: Server;
  /** Hand-written hashing and writes on the service's data. */
  nodeHttp: Server;
  /** With its own database. */
  betterAuth: Server;
  /** The environment with which another hand-written server shares the service's data. */
  env: Record<string, string>;
  /** Receives the mails of the service and of `nodeHttp`. */
  smtp: SmtpSink;
  /** Users logged in at the service, and so at the baselines. */
  people: Person[];
  /** As many users logged in at better-auth. */
  peerPeople: Person[];
}

export interface Person {
  email: string;
  cookie: string;
  /** The cookie of a known device for a login: otherwise each login sends a mail. */
  device: string;
}

/** More users than connections, so that concurrent calls are of different users. */
export const PEOPLE = 64;

export const nodeHttpFile = join(import.meta.dirname, 'baselines/node-http.ts');

export async function startServers(parts: Parts): Promise<Servers> {
  const { smtp, s3 } = await parts.startSinks();
  // The bench uploads more per user than the limit allows.
  const limits = { LIMIT_UPLOAD: '1000000/3600', LIMIT_UPLOAD_CHECK: '1000000/3600', UPLOAD_QUOTA: String(2 ** 40) };
  const { service, database } = await parts.startProduction({ SMTP_URL: smtp.url, ...s3.env, ...limits });
  await addPeople(database, 3);
  const { DATABASE_URL = '', REDIS_URL = '' } = service.env;
  const env = { DATABASE_URL, REDIS_URL, SMTP_URL: smtp.url };
  const koa = await parts.startServer(join(import.meta.dirname, 'baselines/koa.ts'), env);
  const nodeHttp = await parts.startServer(nodeHttpFile, env);
  const own = await parts.emptyStores();
  const betterAuth = await parts.startServer(join(import.meta.dirname, 'peers/better-auth.ts'), own);
  if (service.pid === undefined) throw new Error('the service does not run');
  return {
    service: { url: service.url, pid: service.pid },
    koa,
    nodeHttp,
    betterAuth,
    env,
    smtp,
    people: await Promise.all(Array.from({ length: PEOPLE }, (_, n) => logIn(service.url, database, n))),
    peerPeople: await Promise.all(Array.from({ length: PEOPLE }, (_, n) => signUp(betterAuth.url, n))),
  };
}

export async function logIn(url: string, database: DatabaseView, n: number): Promise<Person> {
  const email = await personEmail(database, n);
  const headers = { 'X-Forwarded-For': `198.51.100.${n}` };
  const answer = await call(`${url}/auth/login`, { headers, body: { email, password: PASSWORD } });
  const lines = answer.headers['set-cookie'] ?? [];
  const device = cookieOf(lines.filter((line) => line.includes('auth_device=')));
  return { email, cookie: cookieOf(lines), device };
}

async function signUp(url: string, n: number): Promise<Person> {
  const email = `person-${n}@example.test`;
  const body = { name: `Person ${n}`, email, password: PASSWORD };
  const answer = await call(`${url}/api/auth/sign-up/email`, { headers: { Origin: url }, body });
  return { email, cookie: cookieOf(answer.headers['set-cookie']), device: '' };
}

const cookieOf = (lines: string[] = []): string => lines.map((line) => line.split(';')[0]).join('; ');
