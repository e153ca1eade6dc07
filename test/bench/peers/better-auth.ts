import { pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { promisify } from 'node:util';
import { betterAuth } from 'better-auth';
import { getMigrations } from 'better-auth/db/migration';
import { toNodeHandler } from 'better-auth/node';
import { Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';

/**
 * better-auth as its documentation sets it up for production: MySQL, sessions in Redis, the Node handler. Like ours, it
 * uses the same hash from Node, and no session cache in the cookie, which would accept an ended session.
 * In its favour: no limits, no log, no telemetry.
 */
const { PORT, REDIS_URL = '', DATABASE_URL = '' } = process.env;
const redis = new Redis(REDIS_URL);
const derive = promisify(pbkdf2);
const ITERATIONS = 100_000;

const auth = betterAuth({
  baseURL: `http://127.0.0.1:${PORT}`,
  secret: randomBytes(32).toString('hex'),
  database: createPool({ uri: DATABASE_URL, connectionLimit: 10, timezone: 'Z' }),
  secondaryStorage: {
    get: (key) => redis.get(key),
    getAndDelete: (key) => redis.getdel(key),
    async increment(key, ttl) {
      const [counted] = (await redis.multi().incr(key).expire(key, ttl, 'NX').exec()) ?? [];
      return Number(counted?.[1]);
    },
    set: (key, value, ttl) => (ttl ? redis.set(key, value, 'EX', ttl) : redis.set(key, value)),
    delete: async (key) => {
      await redis.del(key);
    },
  },
  emailAndPassword: {
    enabled: true,
    password: {
      async hash(password) {
        const salt = randomBytes(16);
        const hash = await derive(password, salt, ITERATIONS, 32, 'sha256');
        return `${ITERATIONS}:${salt.toString('base64')}:${hash.toString('base64')}`;
      },
      async verify({ hash: stored, password }) {
        const [rounds, salt = '', hash = ''] = stored.split(':');
        const derived = await derive(password, Buffer.from(salt, 'base64'), Number(rounds), 32, 'sha256');
        return timingSafeEqual(derived, Buffer.from(hash, 'base64'));
      },
    },
  },
  user: { additionalFields: { bio: { type: 'string', required: false } } },
  session: { cookieCache: { enabled: false } },
  rateLimit: { enabled: false },
  logger: { disabled: true },
  telemetry: { enabled: false },
});

const { runMigrations } = await getMigrations(auth.options);
await runMigrations();
createServer(toNodeHandler(auth)).listen(Number(PORT), '127.0.0.1');
