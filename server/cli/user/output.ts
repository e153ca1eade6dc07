import type { ManagedUser } from '../../accounts/administration/index.ts';
import type { Accounts } from '../../accounts/index.ts';
import { inUtc } from '../../accounts/mail/index.ts';

type Shown = NonNullable<Awaited<ReturnType<Accounts['administration']['users']['show']>>>;

/** `2026-11-22`. */
export const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** For programs. */
export const iso = (ms: number): string => new Date(ms).toISOString();

const maybeIso = (ms: number | null) => (ms === null ? null : iso(ms));

/** Names and devices are untrusted text: control characters would reach the terminal. */
export const plain = (text: string): string => text.replace(/\p{C}/gu, '�');

type Summary = Pick<
  ManagedUser,
  'id' | 'email' | 'name' | 'role' | 'emailVerified' | 'createdAt' | 'blockedAt' | 'deletedAt'
>;

/** For programs; times in ISO 8601. */
export const summaryOf = ({ id, email, name, role, emailVerified, createdAt, blockedAt, deletedAt }: Summary) => ({
  id,
  email,
  name,
  role,
  emailVerified,
  createdAt: iso(createdAt),
  blockedAt: maybeIso(blockedAt),
  deletedAt: maybeIso(deletedAt),
});

const stateOf = ({ emailVerified, blockedAt, deletedAt }: Summary): string =>
  [
    blockedAt !== null && `blocked since ${day(blockedAt)}`,
    deletedAt !== null && `being deleted since ${day(deletedAt)}`,
    !emailVerified && 'unverified',
  ]
    .filter(Boolean)
    .join(', ');

/** Columns as wide as their content. */
export function table(rows: string[][]): string {
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0))) ?? [];
  const lines = rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return lines.map((line) => `${line}\n`).join('');
}

export const listOf = (users: Summary[]): string =>
  users.length === 0
    ? 'No account\n'
    : table([
        ['EMAIL', 'NAME', 'ROLE', 'SINCE', 'STATE'],
        ...users.map((user) => [user.email, plain(user.name), user.role, day(user.createdAt), stateOf(user)]),
      ]);

/** An account, without secrets. */
export function describe({ user, hasPassword, identities, totp, passkeys, sessions }: Shown) {
  const waysIn = [
    ...(hasPassword ? ['password'] : []),
    ...identities.map(({ provider, email }) => (email ? `${provider} (${plain(email)})` : provider)),
    ...passkeys.map(({ name }) => `passkey “${plain(name)}”`),
  ];
  const hasSecondFactor = totp.enabledAt !== undefined;
  const text = table([
    ['Email', user.email],
    ['Name', plain(user.name)],
    ['Id', user.id],
    ['Role', user.role],
    ['State', stateOf(user) || 'verified'],
    ['Since', inUtc(user.createdAt)],
    ['Logs in by', waysIn.join(', ') || 'nothing'],
    ['Second factor', hasSecondFactor ? `authenticator app, ${totp.recoveryCodesLeft} recovery codes left` : 'none'],
    ['Sessions', String(sessions.length)],
    // Only the hour of the last use is stored; it may have begun before the login.
    ...sessions.map(({ createdAt, lastUsedAt, address, device, method }) => [
      '',
      `${plain(device)}, from ${address}, by ${method}, last used about ${inUtc(Math.max(createdAt, lastUsedAt))}`,
    ]),
  ]);
  const data = {
    ...summaryOf(user),
    hasPassword,
    identities: identities.map(({ provider, email }) => ({ provider, email })),
    passkeys: passkeys.map(({ name }) => name),
    hasSecondFactor,
    recoveryCodesLeft: totp.recoveryCodesLeft,
    sessions: sessions.map(({ createdAt, lastUsedAt, ...session }) => ({
      ...session,
      createdAt: iso(createdAt),
      lastUsedAt: iso(lastUsedAt),
    })),
  };
  return { text, data };
}
