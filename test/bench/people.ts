import { pbkdf2Sync, randomBytes } from 'node:crypto';
import type { DatabaseView } from '../rig/observe/database-view.ts';

export const PASSWORD = 'Analytical-Engine-1843';
const ITERATIONS = 100_000;
/** The creation time of user 0, in milliseconds since 1970; each further one is a second later. */
export const FIRST_MADE = 1_700_000_000_000;
export const MADE_EVERY_MS = 1000;

/** The prefix of a tenth of all names and emails. */
export const COMMON = 'a';
/** The name of one in 10,000. */
export const RARE = 'Zenobia';
/** The name of the oldest fiftieth only, which a search from the newest reaches last. */
export const OLD = 'Quentin';

const firstNames = words(
  'Ada Alan Amir Anna Barbara Bjarne Carla Chen Dmitri Dorothy Edsger Elena Fatima Frances Grace Greta Hedy Hiro Ines Ivan Jean John Kateryna Ken Leslie Linus Margaret Maya Niklaus Olga Pavel Radia Rosa Sofia Tim Tony Ursula Vera Wei Yuki',
);
const lastNames = words(
  'Adams Baker Becker Castro Diaz Eriksen Fischer Garcia Haddad Ivanov Jansen Kim Lopez Meyer Nakamura Olsen Petrov Quist Rossi Silva Tanaka Ueda Varga Weber Young',
);

/**
 * Fills `users` with 10 to the power of `exponent` verified users, created one a second, with the password PASSWORD.
 * One statement in SQL that MySQL and MariaDB share; a checksum of the number spreads the names.
 */
export async function addPeople({ query }: DatabaseView, exponent: number): Promise<void> {
  const first = `case when n < ${10 ** exponent / 50} then '${OLD}' when n % 10000 = 4999 then '${RARE}'
    else ${pick(firstNames, 'crc32(n)')} end`;
  await query(
    `insert into users (id, email, name, search_name, provider, role, email_verified, password_hash, session_epoch, created_at)
     select id, lower(concat(replace(name, ' ', '.'), '.', n, '@example.test')), name, lower(name), 'email', 'user', 1, ?, 0, made
     from (
       select n, ${madeAt('n')} as made,
         concat(${first}, ' ', ${pick(lastNames, 'crc32(n) div 64')}) as name,
         ${idOf('n')} as id
       from (${numbers(exponent)}) numbers
     ) people
     order by id`,
    [passwordHash()],
  );
}

const madeAt = (n: string) => `${FIRST_MADE} + ${n} * ${MADE_EVERY_MS}`;

/** A UUIDv7 from a time in milliseconds and a number below 10^12, as SQL. */
export const uuidOf = (time: string, n: string) => {
  const hex = `lower(lpad(hex(${time}), 12, '0'))`;
  return `concat(left(${hex}, 8), '-', right(${hex}, 4), '-7000-8000-', lpad(${n}, 12, '0'))`;
};

/** The id of user n, as SQL: in order of creation. */
export const idOf = (n: string) => `concat('user_', ${uuidOf(madeAt(n), n)})`;

/** The same id in JavaScript. */
export const personId = (n: number) => {
  const time = (FIRST_MADE + n * MADE_EVERY_MS).toString(16).padStart(12, '0');
  return `user_${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${String(n).padStart(12, '0')}`;
};

/** The email of a user. */
export async function personEmail({ query }: DatabaseView, n: number): Promise<string> {
  const [row] = await query<{ email: string }>('select email from users where id = ?', [personId(n)]);
  if (!row) throw new Error(`there is no person ${n}`);
  return row.email;
}

function passwordHash(): string {
  const salt = randomBytes(16);
  const hash = pbkdf2Sync(PASSWORD, salt, ITERATIONS, 32, 'sha256');
  return `${ITERATIONS}:${salt.toString('base64')}:${hash.toString('base64')}`;
}

/** A select of `n`, from 0 on: one table of ten digits for each decimal place. */
export function numbers(exponent: number): string {
  const places = Array.from({ length: exponent }, (_, place) => place);
  const digits = Array.from({ length: 10 }, (_, digit) => `select ${digit} as digit`).join(' union all ');
  const sum = places.map((place) => `p${place}.digit * ${10 ** place}`).join(' + ');
  return `select ${sum} as n from ${places.map((place) => `(${digits}) p${place}`).join(' cross join ')}`;
}

const pick = (from: string[], by: string) =>
  `elt(1 + (${by}) % ${from.length}, ${from.map((word) => `'${word}'`).join(', ')})`;

function words(text: string): string[] {
  return text.split(' ');
}
