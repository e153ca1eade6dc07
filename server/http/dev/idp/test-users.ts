import { createHash } from 'node:crypto';
import { normalizeEmail } from '../../../accounts/text-rules.ts';
import type { KeyValueStore } from '../../../parts/key-value/contract.ts';

const LIFE_MS = 30 * 24 * 60 * 60 * 1000;

/** A user as typed on the page of the embedded provider. */
export interface TestUser {
  subject: string;
  email: string;
  emailVerified: boolean;
  name: string;
}

const keyOf = (subject: string) => `dev-idp:user:${createHash('sha256').update(subject).digest('base64url')}`;

/** The user typed last under each subject. */
export const createTestUsers = (store: KeyValueStore) => ({
  async save(user: TestUser): Promise<void> {
    await store.set(keyOf(user.subject), JSON.stringify(user), { ttlMs: LIFE_MS });
  },

  async find(subject: string): Promise<TestUser | undefined> {
    const stored = await store.get(keyOf(subject));
    return stored === null ? undefined : (JSON.parse(stored) as TestUser);
  },
});

export type TestUsers = ReturnType<typeof createTestUsers>;

/** The user in a submitted form. Without a subject, one is derived from the address: the same each time. */
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
