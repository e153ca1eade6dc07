import { pbkdf2Sync, randomBytes, randomUUID } from 'node:crypto';
import { freshEmail } from '../../rig/servers/address.ts';
import { logIn, PASSWORD, type Scenario } from './scenario.ts';

const salt = randomBytes(16);
const PASSWORD_HASH = `1000:${salt.toString('base64')}:${pbkdf2Sync(PASSWORD, salt, 1000, 32, 'sha256').toString('base64')}`;

/** A logged-in user who is inserted directly, because registration may be closed. */
export async function storedUser(
  { stack, call }: Scenario,
  { role = 'user', email = freshEmail() }: { role?: 'user' | 'admin'; email?: string } = {},
) {
  const user = { id: `user_${randomUUID()}`, email, name: 'Ada Lovelace', password: PASSWORD };
  await stack.database(
    `insert into users (id, email, name, search_name, provider, role, email_verified, password_hash, password_proven, session_epoch, created_at)
     values (?, ?, ?, 'ada lovelace', 'email', ?, 1, ?, 1, 0, ?)`,
    [user.id, email, user.name, role, PASSWORD_HASH, Date.now()],
  );
  return { ...user, session: await logIn(call, user) };
}
