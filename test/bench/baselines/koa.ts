import { createHash } from 'node:crypto';
import Router from '@koa/router';
import { Redis } from 'ioredis';
import Koa from 'koa';
import { createPool, type RowDataPacket } from 'mysql2/promise';

/**
 * Hand-written reads and nothing else: no log, headers, limits, schemas or timeouts. It serves the service's sessions
 * from the service's rows, with identical bytes.
 */
const { PORT, REDIS_URL = '', DATABASE_URL = '' } = process.env;
const redis = new Redis(REDIS_URL);
const pool = createPool({ uri: DATABASE_URL, connectionLimit: 10 });

const listed = ({ id, name, email, avatar, provider, created_at }: RowDataPacket) => ({
  id,
  name,
  email,
  avatar: avatar ?? '',
  provider,
  createdAt: Math.floor(created_at / 1000),
});

const router = new Router()
  .get('/api/health', async (ctx) => {
    await pool.query('select 1');
    ctx.body = { status: 'ok', db: 'connected', timestamp: new Date().toISOString(), version: '0.1.0' };
  })
  .get('/api/profile', async (ctx) => {
    const token = ctx.cookies.get('auth_session') ?? '';
    const stored = await redis.get(`session:${createHash('sha256').update(token).digest('base64url')}`);
    const session = stored && JSON.parse(stored);
    if (!session || session.expiresAt <= Date.now()) ctx.throw(401);
    const [[row]] = await pool.query<RowDataPacket[]>(
      'select id, email, name, bio, location, website, avatar, provider, email_verified, session_epoch, created_at from users where id = ?',
      [session.userId],
    );
    if (row?.['session_epoch'] !== session.epoch) ctx.throw(401);
    const { bio, location, website, email_verified } = row as RowDataPacket;
    ctx.body = {
      user: {
        ...listed(row as RowDataPacket),
        bio: bio ?? '',
        location: location ?? '',
        website: website ?? '',
        emailVerified: email_verified === 1,
      },
    };
  })
  .get('/api/users', async (ctx) => {
    const limit = Number(ctx.query['limit'] ?? 100);
    if (!Number.isInteger(limit) || limit < 1 || limit > 100) ctx.throw(400);
    const [rows] = await pool.query<RowDataPacket[]>(
      'select id, email, name, avatar, provider, created_at from users order by id desc limit ?',
      [limit + 1],
    );
    const data = rows.slice(0, limit).map(listed);
    ctx.body = { data, ...(rows.length > limit && { nextCursor: data.at(-1)?.id }) };
  });

new Koa().use(router.routes()).listen(Number(PORT), '127.0.0.1');
