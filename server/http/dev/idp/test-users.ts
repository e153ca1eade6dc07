import { createHash } from 'node:crypto';
import { z } from 'zod';
import { normalizeEmail } from '../../../accounts/users/index.ts';
import type { KeyValueStore } from '../../../parts/key-value/contract.ts';

const LIFE_MS = 30 * 24 * 60 * 60 * 1000;

const storedUser = z.object({
  subject: z.string(),
  email: z.string(),
  emailVerified: z.boolean(),
  name: z.string(),
});

/** A user as typed on the page of the embedded provider. */
export type TestUser = z.infer<typeof storedUser>;

const keyOf = (subject: string) => `dev-idp:user:${createHash('sha256').update(subject).digest('base64url')}`;

/** The last user typed under each subject. */
export const createTestUsers = (store: KeyValueStore) => ({
  async save(user: TestUser): Promise<void> {
    await store.set(keyOf(user.subject), user, { ttlMs: LIFE_MS });
  },

  async find(subject: string): Promise<TestUser | undefined> {
    return (await store.get(keyOf(subject), storedUser)) ?? undefined;
  },
});

export type TestUsers = ReturnType<typeof createTestUsers>;

/** The user in a submitted form. A missing subject is derived from the email address, always the same. */
export function testUserIn(form: Record<string, unknown>): TestUser {
  const text = (name: string) => (typeof form[name] === 'string' ? form[name].trim().slice(0, 1000) : '');
  const email = text('email');
  return {
    email,
    subject: text('subject') || createHash('sha256').update(normalizeEmail(email)).digest('hex').slice(0, 20),
    emailVerified: form['verified'] !== undefined,
    name: text('name'),
  };
}
