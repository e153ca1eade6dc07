import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import type { Cluster, Redis } from 'ioredis';
import { inject } from 'vitest';
import { type DatabaseView, type Query, viewMysql, viewSqlite } from './database-view.ts';
import { type Mail, type MailQuery, matches } from './mail.ts';
import { isMutationRun } from './mutation-run.ts';
import { createDatabase, dropDatabase } from './mysql.ts';
import { outsideMutationRun } from './outside-mutation-run.ts';
import { flush, nextDatabase, redisClient } from './redis.ts';
import { type Service, startService } from './service.ts';
import { type SmtpSink, startSmtpSink } from './smtp.ts';
import { inTime, until } from './until.ts';

/** `embedded`: one process and its data directory. `real`: processes on MySQL, Redis and SMTP. */
export type StackName = 'embedded' | 'real';

export interface StackOptions {
  /** For every process; undefined takes a variable away. */
  env?: Record<string, string | undefined>;
  /** Processes on the same parts; `real` only. */
  instances?: number;
  /** Servers of the test's own, to freeze or kill; else those of the whole run. */
  mysqlUrl?: string;
  redisUrl?: string;
  /** The directory of the release that runs, instead of the code as it is. */
  tree?: string | undefined;
}

export interface Stack {
  readonly name: StackName;
  readonly services: Service[];
  /** Of the first process. */
  readonly url: string;
  /** The same for all processes. */
  readonly appUrl: string;
  /** The `count`th mail (1) that matches, counted from the oldest; waits for it at most `within` ms (`MAIL_MS`). */
  waitForMail(query: MailQuery & { count?: number; within?: number }): Promise<Mail>;
  /** What was mailed to an address so far, oldest first. */
  mailsTo(address: string): Promise<Mail[]>;
  /** SQL on the service's own database. */
  readonly database: Query;
  /** On the service's own Redis database. Undefined where the service runs without Redis. */
  readonly redis: Redis | Cluster | undefined;
  /** The mail server of this stack alone. Undefined where mails are kept by the service. */
  readonly smtp: SmtpSink | undefined;
  /** Stops every process and deletes all data. */
  stop(): Promise<void>;
}

/** The parts that one stack runs on, and how to see into them. */
interface Parts {
  env: Record<string, string>;
  database(dataDir: string): DatabaseView;
  mailsTo(address: string, service: Service): Promise<Mail[]>;
  redis?: Redis | Cluster;
  smtp?: SmtpSink;
  /** Frees the parts, after every service has stopped and every view is closed. */
  release(): Promise<void>;
}

/** A mail whose delivery failed, as on a machine that does much else, goes out once its lease of 20 s has ended. */
const MAIL_MS = 30_000;

/** Starts the service on fresh, empty parts; resolves once every process is ready. */
export async function startStack(name: StackName, options: StackOptions = {}): Promise<Stack> {
  const { env = {}, instances = 1, tree } = options;
  if (name === 'embedded' && instances !== 1) throw new Error('the embedded form is one process');
  if (isMutationRun && name === 'real') outsideMutationRun('MySQL, Redis and SMTP');
  const parts = name === 'real' ? await realParts(options) : embeddedParts();
  const services: Service[] = [];
  try {
    const first = await startService({ env: { ...parts.env, ...env }, tree });
    services.push(first);
    const shared = { ...parts.env, APP_URL: first.appUrl, ...env };
    for (let i = 1; i < instances; i++) services.push(await startService({ env: shared, tree }));
    return assemble(name, parts, first, services);
  } catch (error) {
    await stopAll(services);
    await parts.release();
    throw error;
  }
}

function assemble(name: StackName, parts: Parts, first: Service, services: Service[]): Stack {
  const view = parts.database(first.dataDir);
  const mailsTo = (address: string) => parts.mailsTo(address, first);
  return {
    name,
    services,
    url: first.url,
    appUrl: first.appUrl,
    waitForMail({ count = 1, within = MAIL_MS, ...query }) {
      const find = async () => (await mailsTo(query.to)).filter((mail) => matches(mail, query))[count - 1];
      return until(find, { within, what: `mail ${count} to ${query.to}, subject ${query.subject ?? 'any'}` });
    },
    mailsTo,
    database: view.query,
    redis: parts.redis,
    smtp: parts.smtp,
    async stop() {
      try {
        await stopAll(services);
      } finally {
        await view.close();
        await parts.release();
      }
    },
  };
}

/** Every service is stopped and its data deleted, also if one of them fails to stop; then that error is thrown. */
async function stopAll(services: Service[]): Promise<void> {
  const ends = await Promise.allSettled(
    services.map((service) =>
      service.stop({ by: 'SIGINT' }).finally(() => rm(service.dataDir, { recursive: true, force: true })),
    ),
  );
  const failure = ends.find((end) => end.status === 'rejected');
  if (failure) throw failure.reason;
}

const embeddedParts = (): Parts => ({
  env: {},
  database: viewSqlite,
  mailsTo: readDevMail,
  release: async () => undefined,
});

async function realParts({
  mysqlUrl = inject('mysqlUrl'),
  redisUrl = inject('redisUrl'),
}: StackOptions): Promise<Parts> {
  const databaseUrl = await createDatabase(mysqlUrl);
  const redisDatabaseUrl = await nextDatabase(redisUrl);
  const smtp = await startSmtpSink();
  const redis = redisClient(redisDatabaseUrl);
  return {
    env: {
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisDatabaseUrl,
      SMTP_URL: smtp.url,
      MAIL_FROM: 'Accounts <no-reply@accounts.test>',
      APP_SECRET: randomBytes(32).toString('hex'),
    },
    database: () => viewMysql(databaseUrl),
    mailsTo: async (to) => smtp.mails().filter((mail) => matches(mail, { to })),
    redis,
    smtp,
    async release() {
      await smtp.stop();
      // A test's own servers may be gone by now, and their data with them.
      await Promise.allSettled([dropDatabase(databaseUrl), inTime(flush(redis), { within: 2_000, what: 'FLUSHDB' })]);
      redis.disconnect();
    },
  };
}

interface DevMail {
  id: string;
  to: string;
  from: string;
  subject: string;
  text: string;
  html: string;
}

/** What the embedded form has kept for an address, oldest first. */
async function readDevMail(address: string, { url }: Service): Promise<Mail[]> {
  const page = `${url}/dev/mail?to=${encodeURIComponent(address)}`;
  const response = await fetch(page, { headers: { accept: 'application/json' } });
  if (response.status !== 200) throw new Error(`GET ${page} answered ${response.status}: ${await response.text()}`);
  const newestFirst = (await response.json()) as DevMail[];
  return newestFirst.map(({ id, to, ...mail }) => ({ ...mail, to: [to], messageId: id })).reverse();
}
