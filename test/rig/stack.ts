import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import type { Cluster, Redis } from 'ioredis';
import { inject } from 'vitest';
import { isMutationRun } from './mutation-run.ts';
import { type DatabaseView, type Query, viewMysql, viewSqlite } from './observe/database-view.ts';
import { type Mail, type MailQuery, matches } from './observe/mail.ts';
import { outsideMutationRun } from './outside-mutation-run.ts';
import { type Service, type ServiceOptions, startService } from './process/service.ts';
import { dataDirectory } from './servers/custodian.ts';
import { createDatabase, dropDatabase } from './servers/mysql.ts';
import { flush, nextDatabase, redisClient } from './servers/redis.ts';
import { copyToMysql, copyToSqlite } from './servers/schema.ts';
import { type SmtpSink, startSmtpSink } from './servers/smtp.ts';
import { inTime, until, WAIT_MS } from './until.ts';

/** `embedded`: one process and its data directory. `real`: processes on MySQL, Redis and SMTP. */
export type StackName = 'embedded' | 'real';

export interface StackOptions {
  /** For every process; undefined removes a variable. */
  env?: Record<string, string | undefined>;
  /** The number of processes on the same parts; `real` only. */
  instances?: number;
  /** Private servers of the test, to freeze or kill; otherwise those of the run. */
  mysqlUrl?: string;
  redisUrl?: string;
  /** The directory of the release to run, instead of the current code. */
  tree?: string | undefined;
  /** Of the first process: a program that starts its command. */
  wrapper?: NonNullable<ServiceOptions['wrapper']>;
  /** In the process of the test, outside CI: not for tests that measure, signal or watch a process. */
  inProcess?: boolean;
}

export interface Stack {
  readonly name: StackName;
  readonly services: Service[];
  /** Of the first process. */
  readonly url: string;
  /** The same for all processes. */
  readonly appUrl: string;
  /** The `count`th matching mail (1), from the oldest; waits at most `within` ms (30 s). */
  waitForMail(query: MailQuery & { count?: number; within?: number }): Promise<Mail>;
  /** The mails to an address so far, oldest first. */
  mailsTo(address: string): Promise<Mail[]>;
  /** SQL on the service's own database. */
  readonly database: Query;
  /** On the service's own Redis database. Undefined without Redis. */
  readonly redis: Redis | Cluster | undefined;
  /** The mail server of this stack. Undefined if the service keeps mails itself. */
  readonly smtp: SmtpSink | undefined;
  /** Stops every process and deletes all data. */
  stop(): Promise<void>;
}

/** The parts of one stack, and views into them. */
interface Parts {
  env: Record<string, string>;
  database(dataDir: string): DatabaseView;
  mailsTo(address: string, service: Service): Promise<Mail[]>;
  redis?: Redis | Cluster;
  smtp?: SmtpSink;
  /** Frees the parts, after every service has stopped and every view is closed. */
  release(): Promise<void>;
}

/** Starts the service on fresh, empty parts; resolves once every process is ready. */
export async function startStack(name: StackName, options: StackOptions = {}): Promise<Stack> {
  const { env = {}, instances = 1, tree, wrapper, inProcess = false } = options;
  if (name === 'embedded' && instances !== 1) throw new Error('the embedded form is one process');
  if (isMutationRun && name === 'real') outsideMutationRun('MySQL, Redis and SMTP');
  const parts = name === 'real' ? await realParts(options) : await embeddedParts(options);
  const services: Service[] = [];
  try {
    const first = await startService({
      env: { ...parts.env, ...env },
      tree,
      ...(wrapper && { wrapper }),
      mayShare: inProcess && instances === 1,
    });
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
    waitForMail({ count = 1, within = WAIT_MS, ...query }) {
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

/** Stops every service and deletes its data, even if one of them fails to stop; then throws that error. */
async function stopAll(services: Service[]): Promise<void> {
  const ends = await Promise.allSettled(
    services.map((service) =>
      service.stop({ by: 'SIGINT' }).finally(() => rm(service.dataDir, { recursive: true, force: true })),
    ),
  );
  const failure = ends.find((end) => end.status === 'rejected');
  if (failure) throw failure.reason;
}

/** Undefined where the service makes the schema itself: an older release, and servers of the test's own. */
const schemaFor = ({ tree, mysqlUrl }: StackOptions) =>
  tree === undefined && mysqlUrl === undefined && !isMutationRun ? inject('schema') : undefined;

async function embeddedParts(options: StackOptions): Promise<Parts> {
  const DATA_DIR = dataDirectory('data');
  const schema = schemaFor(options);
  if (schema) await copyToSqlite(schema, DATA_DIR);
  return { env: { DATA_DIR }, database: viewSqlite, mailsTo: readDevMail, release: async () => undefined };
}

async function realParts(options: StackOptions): Promise<Parts> {
  const { mysqlUrl = inject('mysqlUrl'), redisUrl = inject('redisUrl') } = options;
  const databaseUrl = await createDatabase(mysqlUrl);
  const schema = schemaFor(options);
  if (schema) await copyToMysql(schema, databaseUrl);
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
    mailsTo: async (to) => [...smtp.mails(to)],
    redis,
    smtp,
    async release() {
      await smtp.stop();
      // Private servers may already be gone, with their data.
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

/** The mails that the embedded form keeps for an address, oldest first. */
async function readDevMail(address: string, { url }: Service): Promise<Mail[]> {
  const page = `${url}/dev/mail?to=${encodeURIComponent(address)}`;
  const response = await fetch(page, { headers: { accept: 'application/json' } });
  if (response.status !== 200) throw new Error(`GET ${page} answered ${response.status}: ${await response.text()}`);
  const newestFirst = (await response.json()) as DevMail[];
  return newestFirst.map(({ id, to, ...mail }) => ({ ...mail, to: [to], messageId: id })).reverse();
}
