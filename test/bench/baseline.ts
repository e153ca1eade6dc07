import { createHash } from 'node:crypto';
import Router from '@koa/router';
import { Redis } from 'ioredis';
import Koa from 'koa';
import { createPool, type RowDataPacket } from 'mysql2/promise';

/**
 * GET /api/profile written by hand, and nothing else: no log, no headers, no limits, no schemas, no time limits. It answers
 * the service's own sessions from the service's own row, byte for byte.
 */
const { PORT, REDIS_URL = '', DATABASE_URL = '' } = process.env;
const redis = new Redis(REDIS_URL);
const pool = createPool({ uri: DATABASE_URL, connectionLimit: 10 });

const router = new Router().get('/api/profile', async (ctx) => {
  const token = ctx.cookies.get('auth_session') ?? '';
  const stored = await redis.get(`session:${createHash('sha256').update(token).digest('base64url')}`);
  const session = stored && JSON.parse(stored);
  if (!session || session.expiresAt <= Date.now()) ctx.throw(401);
  const [[row]] = await pool.query<RowDataPacket[]>(
    'select id, email, name, bio, location, website, avatar, provider, email_verified, session_epoch, created_at from users where id = ?',
    [session.userId],
  );
  if (row?.['session_epoch'] !== session.epoch) ctx.throw(401);
  const { id, name, email, avatar, provider, created_at, bio, location, website, email_verified } =
    row as RowDataPacket;
  ctx.body = {
    user: {
      id,
      name,
      email,
      avatar: avatar ?? '',
      provider,
      createdAt: Math.floor(created_at / 1000),
      bio: bio ?? '',
      location: location ?? '',
      website: website ?? '',
      emailVerified: email_verified === 1,
    },
  };
});

new Koa().use(router.routes()).listen(Number(PORT), '127.0.0.1');
