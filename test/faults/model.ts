import { expect } from 'vitest';

/**
 * The promises of interface.md and docs/design, in memory. Each method is one call: it returns the expected answer, and
 * makes the expected changes.
 */

/** A value that the service chooses: taken from the first answer that shows it; later ones must be equal. */
export class Chosen<T extends string | number = string> {
  readonly $$typeof = Symbol.for('jest.asymmetricMatcher');
  readonly #pattern: RegExp;
  #value: T | undefined;

  constructor(pattern: RegExp) {
    this.#pattern = pattern;
  }
  get value(): T {
    if (this.#value === undefined) throw new Error(`no answer has shown ${this}`);
    return this.#value;
  }
  get isKnown(): boolean {
    return this.#value !== undefined;
  }
  asymmetricMatch(shown: unknown): boolean {
    if (this.#value === undefined && this.#pattern.test(String(shown))) this.#value = shown as T;
    return this.#value !== undefined && shown === this.#value;
  }
  toAsymmetricMatcher(): string {
    return String(this);
  }
  toString(): string {
    return String(this.#value ?? this.#pattern);
  }
}

export interface Answer {
  /** Over REST; a 201 is a 200 over tRPC. */
  status: number;
  code?: string;
  message?: string;
  /** The fields in the details of an error. */
  fields?: string[];
  data?: unknown;
  /** The session that the answer opens, or whose cookie it clears. */
  session?: Session | 'cleared';
}

type Origin = 'owner' | number;

/** A login method is added by a browser; it is proven once the browser is known to be the inbox owner's. */
export interface Account {
  id: Chosen;
  createdAt: Chosen<number>;
  email: string;
  profile: Record<'name' | 'bio' | 'location' | 'website' | 'avatar', string>;
  provider: string;
  verified: boolean;
  password: string | undefined;
  passwordFrom: Origin | undefined;
  identityFrom: Origin | undefined;
  /** Whether a mail reported a login: every login here is from a new device, except the one that creates the account. */
  wasTold: boolean;
}

export interface Session {
  id: Chosen;
  account: Account;
  /** How it was opened. */
  method: string;
  alive: boolean;
  token: string;
}

type Purpose = 'verify-email' | 'reset-password';

export interface Mail {
  to: string;
  kind: Purpose | 'password-changed' | 'login-methods-removed';
  /** The token of a mail: valid, used or void. */
  token?: { account: Account; state: 'valid' | 'used' | 'void'; hasEndedSessions?: boolean };
}

export interface Upload {
  key: Chosen;
  url: Chosen;
  createdAt: Chosen<number>;
  size: Chosen<number> | number;
  owner: Account;
  contentType: string;
  purpose: 'direct' | 'avatar' | 'post';
  state: 'pending' | 'stored' | 'replaced' | 'removed';
  address?: Chosen;
  /** The mails to its address. */
  sent?: 'as declared' | 'other' | 'deleted';
}

const sideOf = (purpose: 'avatar' | 'post') => (purpose === 'avatar' ? 512 : 1);
/** Of an image of one pixel, without variants. */
const pictureOf = (side: number) => ({ width: side, height: side, variants: [], placeholder: expect.any(String) });

const done = { success: true, message: expect.any(String) };
const ok = (data: unknown, session?: Answer['session']): Answer => ({ status: 200, data, ...(session && { session }) });
const invalid = (fields: string[]): Answer => ({
  status: 400,
  code: 'VALIDATION_FAILED',
  message: 'Validation failed',
  fields: fields.toSorted(),
});
const invalidToken: Answer = { status: 400, code: 'INVALID_TOKEN', message: 'Invalid or expired token' };
const noSession: Answer = { status: 401, code: 'UNAUTHENTICATED' };
const notFound: Answer = { status: 404, code: 'NOT_FOUND' };

const isUrl = (text: string) => text === '' || /^https?:\/\//.test(text);
const isPassword = (text: string) =>
  text.length >= 8 && text.length <= 128 && [/[A-Z]/, /[a-z]/, /\d/, /[^A-Za-z\d]/].every((rule) => rule.test(text));
const rules: Record<string, (text: string) => boolean> = {
  name: (text) => text.trim().length >= 2 && text.trim().length <= 100,
  email: (text) => /^[^@\s]+@[^@\s]+\.[a-z]+$/i.test(text),
  password: isPassword,
  bio: (text) => text.trim().length <= 500,
  location: (text) => text.trim().length <= 100,
  website: isUrl,
  avatar: isUrl,
};
const broken = (input: Record<string, string | null>) =>
  Object.entries(input).flatMap(([field, value]) => (value === null || rules[field]?.(value) ? [] : [field]));

const view = ({ id, email, profile: { name }, provider }: Account) => ({ id, email, name, provider });
const listed = (account: Account) => ({
  ...view(account),
  avatar: account.profile.avatar,
  createdAt: account.createdAt,
});
const publicUser = (account: Account) => ({ ...listed(account), ...account.profile });
const profileOf = (account: Account) => ({ ...publicUser(account), emailVerified: account.verified });

export const bytesOf = ({ size }: Upload) => (typeof size === 'number' ? size : size.value);

export const QUOTA = 100_000;
export const MAX_UPLOAD = 60_000;

export class Model {
  readonly accounts: Account[] = [];
  readonly sessions: Session[] = [];
  readonly mails: Mail[] = [];
  readonly uploads: Upload[] = [];

  accountOf(email: string) {
    return this.accounts.find((account) => account.email === email.toLowerCase());
  }

  register(input: { name: string; email: string; password: string }, browser: number): Answer {
    const fields = broken(input);
    if (fields.length > 0) return invalid(fields);
    if (this.accountOf(input.email)) return { status: 409, code: 'EMAIL_TAKEN', message: 'Email already registered' };
    const account = this.#create({ email: input.email, name: input.name.trim(), provider: 'email' });
    Object.assign(account, { password: input.password, passwordFrom: browser });
    this.#mailToken(account, 'verify-email');
    const { provider: _, ...user } = view(account);
    return { status: 201, data: { ...done, user } };
  }

  login({ email, password }: { email: string; password: string }, former?: Session): Answer {
    const account = this.accountOf(email);
    if (account?.password === undefined || account.password !== password)
      return { status: 401, code: 'INVALID_CREDENTIALS', message: 'Invalid email or password' };
    if (!account.verified)
      return { status: 403, code: 'EMAIL_NOT_VERIFIED', message: 'Please verify your email before logging in' };
    return ok({ ...done, user: view(account) }, this.#open(account, 'password', former));
  }

  logout(session: Session): Answer {
    if (!session.alive) return { ...noSession, session: 'cleared' };
    session.alive = false;
    return ok(done, 'cleared');
  }

  logoutAll(session: Session): Answer {
    if (!session.alive) return noSession;
    this.#endSessions(session.account);
    return ok(done, 'cleared');
  }

  sessionsOf(account: Account): Session[] {
    return this.sessions.filter((session) => session.account === account && session.alive);
  }

  listSessions(session: Session): Answer {
    if (!session.alive) return noSession;
    const text = expect.any(String);
    const time = expect.any(Number);
    const rows = this.sessionsOf(session.account).map(({ id, method }) => ({
      ...{ id, method, address: text, device: text, createdAt: time, lastUsedAt: time },
      current: id === session.id,
    }));
    return ok({ data: rows.reverse() });
  }

  endSession(session: Session, other: Session): Answer {
    if (!session.alive) return noSession;
    if (other.account !== session.account || !other.alive) return notFound;
    other.alive = false;
    return ok(done, other === session ? 'cleared' : undefined);
  }

  endSessionsOf(session: Session): Answer {
    return session.alive ? { status: 403, code: 'FORBIDDEN' } : noSession;
  }

  forgot(email: string): Answer {
    const account = this.accountOf(email);
    if (account) this.#mailToken(account, 'reset-password');
    return ok(done);
  }

  resend(email: string): Answer {
    const account = this.accountOf(email);
    if (account && !account.verified) this.#mailToken(account, 'verify-email');
    return ok(done);
  }

  verify({ kind, token }: Mail, browser: number): Answer {
    if (kind !== 'verify-email' || token === undefined || token.state === 'void') return invalidToken;
    const { account } = token;
    token.state = 'used';
    account.verified = true;
    if (account.passwordFrom === browser) account.passwordFrom = 'owner';
    if (account.identityFrom === browser) account.identityFrom = 'owner';
    const unproven = unprovenOf(account).map((method) => ({ method, addedAt: expect.any(Number) }));
    return ok({ ...done, ...(unproven.length > 0 && { unproven }) });
  }

  notMe({ kind, token }: Mail): Answer {
    if (kind !== 'verify-email' || token === undefined || token.state === 'void') return invalidToken;
    const { account } = token;
    if (account.passwordFrom === 'owner' || account.identityFrom === 'owner') {
      // Sessions end once by each token.
      if (!this.#removeUnproven(account) && !token.hasEndedSessions) {
        token.hasEndedSessions = true;
        this.#endSessions(account);
      }
      return ok(done);
    }
    this.accounts.splice(this.accounts.indexOf(account), 1);
    this.#endSessions(account);
    this.#voidTokens(account);
    return ok(done);
  }

  reset({ kind, token }: Mail, { email, password }: { email: string; password: string }): Answer {
    const isRight = kind === 'reset-password' && token?.state === 'valid';
    if (!isRight || token.account.email !== email.toLowerCase()) return invalidToken;
    if (!isPassword(password)) return invalid(['password']);
    const { account } = token;
    token.state = 'used';
    this.#voidTokens(account, 'verify-email');
    if (!account.verified) claim(account, account.email.slice(0, account.email.indexOf('@')));
    Object.assign(account, { password, passwordFrom: 'owner' });
    this.#endSessions(account);
    this.#removeUnproven(account);
    if (account.wasTold && account.identityFrom !== undefined) {
      // Added since the login, or within the ten minutes that clocks may differ.
      Object.assign(account, { identityFrom: undefined, provider: 'email' });
      this.mails.push({ to: account.email, kind: 'login-methods-removed' });
    }
    this.mails.push({ to: account.email, kind: 'password-changed' });
    return ok(done);
  }

  /** A provider login; each address has one subject there. `vouched`: the provider states that it is verified. */
  provider(email: string, { name, picture, vouched, browser }: Provided, former?: Session): Answer {
    const known = this.accountOf(email);
    const redirect = (data: string, session?: Session): Answer => ({ ...ok(data, session), status: 302 });
    if (known && known.identityFrom === undefined && !vouched) return redirect('/login?error=email_unverified');
    const account = known ?? this.#create({ email, name, provider: 'acme', avatar: picture });
    if (vouched) {
      account.identityFrom = 'owner';
      const isShared = this.#removeUnproven(account);
      if (isShared && !account.verified) claim(account, name);
      account.verified = true;
    } else if (!account.verified) {
      account.identityFrom = browser;
      this.#mailToken(account, 'verify-email');
      return redirect('/verify-email');
    }
    return redirect('/dashboard', this.#open(account, 'acme', former, known !== undefined));
  }

  profile(session: Session): Answer {
    return session.alive ? ok({ user: profileOf(session.account) }) : noSession;
  }

  update(session: Session, change: Record<string, string | null>): Answer {
    if (!session.alive) return noSession;
    const fields = broken(change);
    if (fields.length > 0) return invalid(fields);
    const { account } = session;
    const { avatar } = account.profile;
    const next = change['avatar'] ?? (change['avatar'] === null ? '' : avatar);
    const [shown, former] = [next, avatar].map((url) => this.uploads.find((upload) => upload.url.toString() === url));
    if (shown?.state === 'removed' && shown.purpose === 'direct') {
      // An unchanged value is not a change.
      if (shown !== former) return invalid(['avatar']);
    }
    if (former && former !== shown && former.owner === account && former.purpose === 'avatar')
      if (former.state === 'stored') former.state = 'replaced';
    if (shown?.owner === account && shown.state === 'replaced') shown.state = 'stored';
    for (const [field, value] of Object.entries(change))
      Object.assign(account.profile, { [field]: value?.trim() ?? '' });
    return ok({ success: true, user: profileOf(account) });
  }

  user(account: Account): Answer {
    return this.accounts.includes(account)
      ? ok({ data: publicUser(account) })
      : { ...notFound, message: 'User not found' };
  }

  /** Newest first. */
  list() {
    return this.accounts.toReversed().map(listed);
  }

  presign(session: Session, { contentType, size }: { contentType: string; size: number }): Answer {
    if (!session.alive) return noSession;
    const extension = { 'image/png': 'png', 'application/pdf': 'pdf' }[contentType];
    if (!extension) return invalid(['contentType']);
    if (size > MAX_UPLOAD || this.#usedBy(session.account) + size > QUOTA) return invalid(['size']);
    const upload = this.#declare(session, { contentType, size, purpose: 'direct', state: 'pending' }, extension);
    upload.address = new Chosen(/^http/);
    const { key, url: publicUrl, address: presignedUrl } = upload;
    return ok({ success: true, presignedUrl, publicUrl, key, expiresIn: 300 });
  }

  image(session: Session, purpose: 'avatar' | 'post'): Answer {
    if (!session.alive) return noSession;
    const size = new Chosen<number>(/^\d+$/);
    const upload = this.#declare(session, { contentType: 'image/webp', size, purpose, state: 'stored' }, 'webp');
    const side = sideOf(purpose);
    const [url, originalName] = [upload.url, 'image.png'];
    return ok({ success: true, url, originalName, size, ...pictureOf(side) });
  }

  confirm(session: Session, upload: Upload): Answer {
    if (!session.alive) return noSession;
    if (upload.owner !== session.account || upload.state === 'removed') return notFound;
    const { key, contentType, size, sent } = upload;
    if (upload.purpose !== 'direct' || sent === 'as declared') return ok({ success: true, key, contentType, size });
    if (sent) upload.sent = 'deleted';
    return { status: 400, code: 'VALIDATION_FAILED' };
  }

  remove(session: Session, upload: Upload): Answer {
    if (!session.alive) return noSession;
    if (upload.owner !== session.account || upload.state === 'removed') return notFound;
    upload.state = 'removed';
    const { profile } = session.account;
    if (profile.avatar === upload.url.toString()) profile.avatar = '';
    return ok(done);
  }

  kept(session: Session): Answer {
    if (!session.alive) return noSession;
    const uploads = this.uploads.filter(({ owner, state }) => owner === session.account && state !== 'removed');
    const rows = uploads.map(({ key, url, contentType, size, purpose, state, createdAt }) => {
      const name = expect.stringMatching(/^[\w-]+\.\w+$/);
      const picture = purpose === 'direct' ? {} : pictureOf(sideOf(purpose));
      return { name, key, visibility: 'public', url, contentType, size, purpose, state, createdAt, ...picture };
    });
    return ok({ data: rows });
  }

  usage(session: Session): Answer {
    if (!session.alive) return noSession;
    const { account } = session;
    return ok({ used: this.#usedBy(account), quota: QUOTA, files: this.countedOf(account).length });
  }

  /** A deleted upload counts as long as its URL works, which is longer than a test. */
  countedOf(account: Account) {
    const isCounted = ({ purpose, state }: Upload) => purpose === 'direct' || state !== 'removed';
    return this.uploads.filter((upload) => upload.owner === account && isCounted(upload));
  }

  #usedBy(account: Account) {
    return this.countedOf(account).reduce((sum, upload) => sum + bytesOf(upload), 0);
  }

  #declare(
    { account }: Session,
    values: Pick<Upload, 'contentType' | 'size' | 'purpose' | 'state'>,
    extension: string,
  ) {
    const name = `uploads/[0-9a-f-]{36}\\.${extension}$`;
    const [key, url] = [new Chosen(new RegExp(`^${name}`)), new Chosen(new RegExp(`^http://localhost:\\d+/${name}`))];
    const upload: Upload = { ...values, key, url, owner: account, createdAt: new Chosen(/^\d{10}$/) };
    this.uploads.push(upload);
    return upload;
  }

  #create({ email, name, provider, avatar = '' }: { email: string; name: string; provider: string; avatar?: string }) {
    const account: Account = {
      id: new Chosen(/^user_[0-9a-f-]{36}$/),
      createdAt: new Chosen(/^\d{10}$/),
      email: email.toLowerCase(),
      profile: { name, bio: '', location: '', website: '', avatar },
      provider,
      verified: false,
      password: undefined,
      passwordFrom: undefined,
      identityFrom: undefined,
      wasTold: false,
    };
    this.accounts.push(account);
    return account;
  }

  #open(account: Account, method: string, former?: Session, isTold = true) {
    if (former) former.alive = false;
    account.wasTold ||= isTold;
    const session = { id: new Chosen(/^[\da-f-]{36}$/), account, method, alive: true, token: '' };
    this.sessions.push(session);
    return session;
  }

  #endSessions(account: Account) {
    for (const session of this.sessions) if (session.account === account) session.alive = false;
  }

  /** A newer link voids the older ones. */
  #mailToken(account: Account, kind: Purpose) {
    this.#voidTokens(account, kind);
    this.mails.push({ to: account.email, kind, token: { account, state: 'valid' } });
  }

  #voidTokens(account: Account, purpose?: Purpose) {
    for (const { kind, token } of this.mails)
      if (token?.account === account && (purpose === undefined || kind === purpose)) token.state = 'void';
  }

  /** The owner of the inbox has acted: unproven methods are removed. */
  #removeUnproven(account: Account): boolean {
    const unproven = unprovenOf(account);
    if (unproven.length === 0) return false;
    if (unproven.includes('password')) Object.assign(account, { password: undefined, passwordFrom: undefined });
    if (unproven.includes('acme')) account.identityFrom = undefined;
    const left = account.identityFrom === undefined ? [] : ['acme'];
    if (account.password !== undefined) left.unshift('email');
    if (!left.includes(account.provider)) account.provider = left[0] ?? account.provider;
    this.#endSessions(account);
    this.#voidTokens(account);
    this.mails.push({ to: account.email, kind: 'login-methods-removed' });
    return true;
  }
}

interface Provided {
  name: string;
  picture: string;
  vouched: boolean;
  browser: number;
}

const unprovenOf = ({ passwordFrom, identityFrom }: Account) => [
  ...(passwordFrom !== undefined && passwordFrom !== 'owner' ? ['password'] : []),
  ...(identityFrom !== undefined && identityFrom !== 'owner' ? ['acme'] : []),
];

/** Everything that the registrant of an unverified address wrote is removed. */
function claim(account: Account, name: string) {
  account.profile = { name, bio: '', location: '', website: '', avatar: '' };
  account.verified = true;
}
