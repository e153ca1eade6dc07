import { createHash, pbkdf2, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setPriority } from 'node:os';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { createPool, type PoolConnection, type RowDataPacket } from 'mysql2/promise';
import { createTransport } from 'nodemailer';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { v7 as uuidv7 } from 'uuid';

/**
 * Hand-written hashing and writes on node:http and nothing else: no log, headers, schemas or timeouts, and a mail is lost
 * if the process ends before sending it. It shares sessions, users and limits with the service, and does the same
 * durable work: each change, and each session row, in one transaction with its event. HASHING_NICE sets the priority of
 * its hashing threads (Linux).
 */
const { PORT, REDIS_URL = '', DATABASE_URL = '', SMTP_URL = '', HASHING_NICE } = process.env;
const redis = new Redis(REDIS_URL);
const pool = createPool({ uri: DATABASE_URL, connectionLimit: 10 });
const mails = createTransport({ url: SMTP_URL, pool: true, maxConnections: 5 });
const limiterOf = (name: string, points: number) =>
  new RateLimiterRedis({ storeClient: redis, keyPrefix: `limit:${name}`, points, duration: 900 });
const limits = { login: limiterOf('login', 5), register: limiterOf('register', 100) };
const derive = promisify(pbkdf2);
const ITERATIONS = 100_000;
const WEEK_MS = 7 * 24 * 60 * 60 * 1000;
const DAY_MS = 24 * 60 * 60 * 1000;

const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url');
const newToken = () => randomBytes(32).toString('base64url');

/** Runs statements as one transaction. */
async function transaction<T>(work: (connection: PoolConnection) => Promise<T>): Promise<T> {
  const connection = await pool.getConnection();
  try {
    await connection.beginTransaction();
    const result = await work(connection);
    await connection.commit();
    return result;
  } catch (error) {
    await connection.rollback();
    throw error;
  } finally {
    connection.release();
  }
}

const record = (connection: PoolConnection, request: IncomingMessage, userId: string, kind: string, details: object) =>
  connection.query('insert into activity set ?', {
    id: uuidv7(),
    user_id: userId,
    kind,
    actor: 'user',
    address: String(request.headers['x-forwarded-for'] ?? '').slice(0, 64),
    device: String(request.headers['user-agent'] ?? '').slice(0, 100),
    request_id: randomUUID(),
    details: JSON.stringify(details),
    created_at: Date.now(),
  });

class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

type Fields = Record<string, string | undefined>;

async function json(request: IncomingMessage): Promise<Fields> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const chunks: Buffer[] = [];
  request
    .on('data', (chunk: Buffer) => chunks.push(chunk))
    .on('end', resolve)
    .on('error', reject);
  await promise;
  return JSON.parse(Buffer.concat(chunks).toString());
}

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<unknown>;

async function spend(limiter: RateLimiterRedis, request: IncomingMessage): Promise<void> {
  await limiter.consume(String(request.headers['x-forwarded-for'])).catch(() => {
    throw new Refusal(429, 'Too many attempts.');
  });
}

const logIn: Handler = async (request, response) => {
  const { email, password } = await json(request);
  if (!email || !password) throw new Refusal(400, 'Validation failed');
  await spend(limits.login, request);
  const [[user]] = await pool.query<RowDataPacket[]>(
    'select id, email, name, provider, email_verified, session_epoch, password_hash from users where email = ?',
    [email.toLowerCase()],
  );
  const [rounds, salt = '', hash = ''] = (user?.['password_hash'] ?? '').split(':');
  const derived = await derive(password, Buffer.from(salt, 'base64'), Number(rounds) || ITERATIONS, 32, 'sha256');
  const stored = Buffer.from(hash, 'base64');
  if (!user || stored.length !== derived.length || !timingSafeEqual(derived, stored))
    throw new Refusal(401, 'Invalid email or password');
  if (user['email_verified'] !== 1) throw new Refusal(403, 'Please verify your email before logging in');
  const token = newToken();
  const createdAt = Date.now();
  const expiresAt = createdAt + WEEK_MS;
  const { id, name, provider, session_epoch: epoch } = user;
  const session = JSON.stringify({ userId: id, epoch, createdAt, expiresAt });
  await redis.set(`session:${sha256(token)}`, session, 'PX', WEEK_MS);
  await transaction(async (connection) => {
    await connection.query('insert into sessions set ?', {
      id: uuidv7(),
      user_id: id,
      epoch,
      method: 'password',
      address: String(request.headers['x-forwarded-for']),
      device: String(request.headers['user-agent'] ?? '').slice(0, 100),
      created_at: createdAt,
      authenticated_at: createdAt,
      last_used_at: createdAt,
      expires_at: expiresAt,
    });
    await record(connection, request, id, 'logged-in', { method: 'password' });
  });
  response.setHeader(
    'Set-Cookie',
    `auth_session=${token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${WEEK_MS / 1000}; Secure`,
  );
  return { success: true, message: 'You are logged in.', user: { id, email: user['email'], name, provider } };
};

const register: Handler = async (request, response) => {
  const { name, email, password } = await json(request);
  if (!name || !email?.includes('@') || !password || password.length < 8) throw new Refusal(400, 'Validation failed');
  await spend(limits.register, request);
  const salt = randomBytes(16);
  const hash = await derive(password, salt, ITERATIONS, 32, 'sha256');
  const id = `user_${uuidv7()}`;
  const token = newToken();
  const now = Date.now();
  await transaction(async (connection) => {
    await connection.query('insert into users set ?', {
      id,
      email: email.toLowerCase(),
      name,
      search_name: name.toLowerCase(),
      provider: 'email',
      role: 'user',
      email_verified: 0,
      password_hash: `${ITERATIONS}:${salt.toString('base64')}:${hash.toString('base64')}`,
      session_epoch: 0,
      created_at: now,
    });
    await record(connection, request, id, 'registered', { method: 'password' });
    await connection.query('insert into one_time_tokens set ?', {
      id: randomUUID(),
      user_id: id,
      purpose: 'verify-email',
      token_hash: sha256(token),
      expires_at: now + DAY_MS,
      used: 0,
    });
  }).catch((error: { code?: string }) => {
    throw error.code === 'ER_DUP_ENTRY' ? new Refusal(409, 'Email already registered') : error;
  });
  mails.sendMail(verificationMail(email, `http://localhost/verify-email?token=${token}`)).catch(console.error);
  response.statusCode = 201;
  return {
    success: true,
    message: 'Registration successful. Please check your email to verify your account.',
    user: { id, email, name },
  };
};

function verificationMail(to: string, link: string) {
  const words = 'Please confirm that this address is yours, so that you can log in.';
  return {
    from: 'Accounts <no-reply@accounts.test>',
    to,
    subject: 'Verify your email',
    text: `Hello,\n\n${words}\n\nVerify email:\n${link}\n`,
    html: `<!doctype html><html lang="en"><body><p>Hello,</p><p>${words}</p><p><a href="${link}">Verify email</a></p></body></html>`,
  };
}

/** The row of the user of the request's session. */
async function currentUser(request: IncomingMessage): Promise<RowDataPacket> {
  const token = /(?:^|; )auth_session=([^;]+)/.exec(request.headers.cookie ?? '')?.[1] ?? '';
  const stored = await redis.get(`session:${sha256(token)}`);
  const session = stored && JSON.parse(stored);
  if (!session || session.expiresAt <= Date.now()) throw new Refusal(401, 'No session');
  const [[row]] = await pool.query<RowDataPacket[]>(
    'select id, name, email, avatar, provider, created_at, bio, location, website, email_verified, session_epoch from users where id = ?',
    [session.userId],
  );
  if (row?.['session_epoch'] !== session.epoch) throw new Refusal(401, 'No session');
  return row as RowDataPacket;
}

const toProfile = (user: RowDataPacket) => ({
  id: user['id'],
  name: user['name'],
  email: user['email'],
  avatar: user['avatar'] ?? '',
  provider: user['provider'],
  createdAt: Math.floor(user['created_at'] / 1000),
  bio: user['bio'] ?? '',
  location: user['location'] ?? '',
  website: user['website'] ?? '',
  emailVerified: user['email_verified'] === 1,
});

const readProfile: Handler = async (request) => ({ user: toProfile(await currentUser(request)) });

const changeProfile: Handler = async (request) => {
  const row = await currentUser(request);
  const change = await json(request);
  const changed = Object.fromEntries(
    ['name', 'bio', 'location', 'website', 'avatar'].flatMap((field) =>
      typeof change[field] === 'string' ? [[field, change[field]]] : [],
    ),
  );
  if (typeof changed['name'] === 'string') changed['search_name'] = changed['name'].toLowerCase();
  await transaction(async (connection) => {
    await connection.query('update users set ? where id = ? and session_epoch = ?', [
      changed,
      row['id'],
      row['session_epoch'],
    ]);
    await record(connection, request, row['id'], 'profile-changed', { fields: Object.keys(change).join(', ') });
  });
  return { success: true, user: toProfile({ ...row, ...changed } as RowDataPacket) };
};

const handlers: Record<string, Handler> = {
  'POST /auth/login': logIn,
  'POST /auth/register': register,
  'GET /api/profile': readProfile,
  'PUT /api/profile': changeProfile,
};

// libuv starts its threads with their first task.
if (HASHING_NICE) {
  const before = new Set(readdirSync('/proc/self/task'));
  await Promise.all(Array.from({ length: 8 }, () => derive('', '', ITERATIONS, 32, 'sha256')));
  for (const thread of readdirSync('/proc/self/task'))
    if (!before.has(thread)) setPriority(Number(thread), Number(HASHING_NICE));
}

createServer(async (request, response) => {
  const handler = handlers[`${request.method} ${request.url}`];
  let body: unknown;
  try {
    if (!handler) throw new Refusal(404, 'Not found');
    body = await handler(request, response);
  } catch (error) {
    response.statusCode = error instanceof Refusal ? error.status : 500;
    body = { message: error instanceof Refusal ? error.message : 'Server error' };
  }
  const text = JSON.stringify(body);
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  response.setHeader('Content-Length', Buffer.byteLength(text));
  response.end(text);
}).listen(Number(PORT), '127.0.0.1');
