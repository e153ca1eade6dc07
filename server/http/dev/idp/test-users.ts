import { createHash } from 'node:crypto';
import { normalizeEmail } from '../../../accounts/text-rules.ts';
import type { KeyValueStore } from '../../../parts/key-value/contract.ts';

const LIFE_MS = 30 * 24 * 60 * 60 * 1000;

/** A person as typed on the page of the embedded provider. */
export interface Person {
  subject: string;
  email: string;
  emailVerified: boolean;
  name: string;
}

const keyOf = (subject: string) => `dev-idp:person:${createHash('sha256').update(subject).digest('base64url')}`;

/** The person typed last under each subject. */
export const createPeople = (store: KeyValueStore) => ({
  async remember(person: Person): Promise<void> {
    await store.set(keyOf(person.subject), JSON.stringify(person), { ttlMs: LIFE_MS });
  },

  async find(subject: string): Promise<Person | undefined> {
    const stored = await store.get(keyOf(subject));
    return stored === null ? undefined : (JSON.parse(stored) as Person);
  },
});

export type People = ReturnType<typeof createPeople>;

/** The person in a submitted form. Without a subject, one is derived from the address: the same each time. */
export function personIn(form: Record<string, unknown>): Person {
  const text = (name: string) => (typeof form[name] === 'string' ? form[name].trim().slice(0, 1000) : '');
  const email = text('email');
  return {
    email,
    subject: text('subject') || createHash('sha256').update(normalizeEmail(email)).digest('hex').slice(0, 20),
    emailVerified: form['verified'] !== undefined,
    name: text('name'),
  };
}
