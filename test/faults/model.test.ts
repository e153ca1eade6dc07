import { randomBytes, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { type Call, type CallOptions, callerOf, type Surface } from '../contract/rig/callers.ts';
import { isAlive, mailsSettled, onBothStacks, sessionIn } from '../contract/rig/scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { imageForm, keyOf, put, sendImage } from '../contract/uploads/storage.ts';
import { Browser } from '../provider/browser.ts';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { loginsThrough } from '../provider/login.ts';
import { factor, seed, timeLimit } from '../rig/client/random.ts';
import { startSmtpSink } from '../rig/servers/smtp.ts';
import type { Stack } from '../rig/stack.ts';
import { unlimited } from './load.ts';
import { type Answer, bytesOf, MAX_UPLOAD, type Mail, Model, QUOTA, type Session, type Upload } from './model.ts';

/** Random sequences of calls: the service and a model of the contract must answer and store the same. */
const SEQUENCES = 16;
/** Each lane has its own users, so they run concurrently: they mostly wait for mails. */
const LANES = 8;
const LONGEST = 30;

const provider = await startHostileProvider();
const smtp = await startSmtpSink();
const logInThrough = loginsThrough(provider);
const image = await png(1, 1);
afterAll(() => Promise.all([provider.close(), smtp.stop()]));

const passwords = ['Analytical-Engine-1843', 'Difference-Engine-1822', 'too weak'];
const subjects: Record<Mail['kind'], string> = {
  'verify-email': 'Verify your email',
  'reset-password': 'Reset your password',
  'password-changed': 'Your password for',
  'login-methods-removed': 'Login methods',
};
/** A mail that was never received. */
const noMail: Mail = { to: '', kind: 'verify-email' };

/** One sequence: its users, in the model and in the service. */
class World {
  readonly model = new Model();
  readonly stack: Stack;
  readonly #calls: Record<Surface, Call>;
  readonly #name = `model-${randomBytes(6).toString('hex')}`;
  readonly #browsers = [0, 1].map(() => randomBytes(32).toString('base64url'));
  readonly #unsettled = new Set<string>();

  constructor(stack: Stack) {
    this.stack = stack;
    this.#calls = { rest: callerOf('rest', stack.url), trpc: callerOf('trpc', stack.url) };
  }

  email = (user: number) => `${this.#name}-${user}@example.test`;
  spelled = (user: number, isUpper: boolean) => (isUpper ? this.email(user).toUpperCase() : this.email(user));
  browser = (slot: number) => this.#browsers[slot];
  session = (index: number) => this.model.sessions.at(-1 - (index % this.model.sessions.length)) as Session;
  get uploads() {
    return this.model.uploads.filter(({ owner }) => this.model.accounts.includes(owner));
  }
  upload = (index: number) => this.uploads.at(-1 - (index % this.uploads.length)) as Upload;

  /** The mail this many before the last one of its kind, to any user, with its token. */
  async mail(kind: 'verify-email' | 'reset-password', age: number) {
    const mail = this.model.mails.filter((mail) => mail.kind === kind).at(-1 - age) ?? noMail;
    await this.settle(users.find((user) => this.email(user) === mail.to));
    const earlier = this.model.mails.filter(({ to, kind }) => to === mail.to && kind === mail.kind).indexOf(mail);
    const link = this.#received(mail.to, mail.kind)[earlier]?.text.match(/https?:\/\/\S+/)?.[0];
    return { mail, token: link ? new URL(link).searchParams.get('token') : 'A'.repeat(43) };
  }

  #received = (to: string, kind: Mail['kind']) =>
    smtp.mails(to).filter((mail) => mail.subject.startsWith(subjects[kind]));

  /** Resolves once every mail that the model expects for the user has arrived, and no other. */
  async settle(user: number | undefined) {
    const to = user === undefined ? '' : this.email(user);
    if (!this.#unsettled.delete(to)) return;
    await mailsSettled(this.stack, to);
    const counts = (count: (kind: Mail['kind']) => number) =>
      Object.fromEntries(Object.keys(subjects).map((kind) => [kind, count(kind as Mail['kind'])]));
    expect(
      counts((kind) => this.#received(to, kind).length),
      `mails to ${to}`,
    ).toEqual(counts((kind) => this.model.mails.filter((mail) => mail.to === to && mail.kind === kind).length));
  }
  mayMail = (to: string) => this.#unsettled.add(to);

  /** Calls the service and compares its answer with the model's. */
  async call(surface: Surface, procedure: string, input: unknown, expected: Answer, options: CallOptions = {}) {
    const reply = await this.#calls[surface](procedure, input, options);
    const { status, code, message, details, data } = reply;
    const isRefusal = status >= 400;
    const isPlain = surface === 'rest' && procedure === 'upload.confirm' && status !== 401;
    expect(
      {
        status,
        ...(!isPlain && { code }),
        ...(isRefusal && 'message' in expected && !isPlain && { message }),
        ...(details && { fields: Object.keys(details).sort() }),
        ...(!isRefusal && { data }),
        cookie: sessionIn(reply),
      },
      procedure,
    ).toEqual({
      status: surface === 'trpc' && expected.status === 201 ? 200 : expected.status,
      ...(!isPlain && { code: expected.code }),
      ...('message' in expected && !isPlain && { message: expected.message }),
      ...(expected.fields && { fields: expected.fields }),
      ...(expected.status < 400 && { data: expected.data }),
      cookie: cookieOf(expected),
    });
    if (typeof expected.session === 'object') expected.session.token = sessionIn(reply) ?? '';
    return reply;
  }

  /** All pages of the public list: the users of this sequence, newest first. */
  async list(surface: Surface, q?: boolean) {
    const expected = this.model.list();
    const found: { id: string; email: string }[] = [];
    let cursor: string | undefined;
    do {
      const input = { limit: q ? 2 : 100, ...(q && { q: this.#name }), ...(cursor && { cursor }) };
      const { status, data } = await this.#calls[surface]('users.list', input);
      expect(status).toBe(200);
      found.push(...data.data.filter(({ email }: { email: string }) => email.startsWith(this.#name)));
      cursor = data.nextCursor;
    } while (cursor && found.length < expected.length);
    const byEmail = (a: { email: string }, b: { email: string }) => (a.email < b.email ? -1 : 1);
    if (q) expect(found.toSorted(byEmail)).toEqual(expected.toSorted(byEmail));
    else expect(found).toEqual(expected);
  }

  async endSession(surface: Surface, session: Session, other: Session) {
    // The list shows its id. For a session that ended unseen, any id will do.
    if (other.alive && !other.id.isKnown) {
      await this.call(surface, 'sessions.list', undefined, this.model.listSessions(other), { session: other.token });
    }
    const id = other.id.isKnown ? other.id.value : randomUUID();
    const expected = this.model.endSession(session, other);
    await this.call(surface, 'sessions.end', { id }, expected, { session: session.token });
  }

  async kept(surface: Surface, session: Session) {
    const expected = this.model.kept(session);
    const rows = (expected.data as { data: Upload[] } | undefined)?.data ?? [];
    const reply = await this.#calls[surface]('upload.list', undefined, { session: session.token });
    const byUrl = (a: { url: unknown }, b: { url: unknown }) => (String(a.url) < String(b.url) ? -1 : 1);
    expect(reply.status).toBe(expected.status);
    if (expected.status === 200) expect(reply.data.data.toSorted(byUrl)).toEqual(rows.toSorted(byUrl));
  }

  async image(surface: Surface, session: Session, type: 'avatar' | 'post') {
    const expected = this.model.image(session, type);
    if (surface === 'trpc')
      return this.call(surface, 'upload.image', imageForm({ bytes: image, type }), expected, {
        session: session.token,
      });
    const { status, body } = await sendImage(this, session.token, { bytes: image, type });
    expect(status).toBe(expected.status);
    if (status === 200) expect(body).toEqual(expected.data);
  }

  async provider(email: string, vouched: boolean, slot: number, former: Session | undefined) {
    const person = { name: 'Grace Hopper', picture: 'https://img.example.test/grace.png' };
    const expected = this.model.provider(email, { ...person, vouched, browser: slot }, former);
    const browser = new Browser();
    browser.cookies.set('auth_browser', this.browser(slot) ?? '');
    if (former) browser.cookies.set('auth_session', former.token);
    const claims = { ...person, sub: email.toLowerCase(), email, email_verified: vouched };
    const { location } = await logInThrough(this.stack, claims, { browser });
    const cookie = sessionIn({ setCookies: browser.setCookies } as never);
    expect({ location, cookie }).toEqual({ location: expected.data, cookie: cookieOf(expected) });
    if (typeof expected.session === 'object') expected.session.token = cookie ?? '';
  }

  /** The stored data after the last call, and the valid sessions. */
  async compareStored() {
    for (const user of users) await this.settle(user);
    const { database } = this.stack;
    const { accounts, sessions } = this.model;
    const rows = await database<Record<string, unknown>>(
      `select id, email, name, bio, location, website, avatar, provider, email_verified,
       case when password_hash is null then 0 else 1 end as has_password, password_proven from users where email like ?`,
      [`${this.#name}-%`],
    );
    const orNull = (text: string) => text || null;
    expect(rows.sort((a, b) => (String(a['id']) < String(b['id']) ? -1 : 1))).toEqual(
      accounts.map(({ id, email, profile, provider, verified, password, passwordFrom }) => ({
        ...{ id, email, name: profile.name, provider },
        ...{ bio: orNull(profile.bio), location: orNull(profile.location) },
        ...{ website: orNull(profile.website), avatar: orNull(profile.avatar) },
        email_verified: Number(verified),
        has_password: Number(password !== undefined),
        password_proven: Number(passwordFrom === 'owner'),
      })),
    );
    for (const account of accounts.filter(({ id }) => id.isKnown)) {
      const [usage] = await database<{ used: number; files: number }>(
        'select used, files from upload_usage where user_id = ?',
        [account.id.value],
      );
      const stored = await database<{ id: string }>('select id from sessions where user_id = ?', [account.id.value]);
      expect(stored, 'rows of sessions').toHaveLength(this.model.sessionsOf(account).length);
      const counted = this.model.countedOf(account);
      const used = counted.reduce((sum, upload) => sum + bytesOf(upload), 0);
      expect([Number(usage?.used ?? 0), Number(usage?.files ?? 0)]).toEqual([used, counted.length]);
    }
    const alive = await Promise.all(sessions.map(({ token }) => isAlive(this.#calls.rest, token)));
    expect(alive, 'sessions alive').toEqual(sessions.map((session) => session.alive));
  }
}

const cookieOf = ({ session }: Answer) =>
  session === 'cleared' ? '' : session && expect.stringMatching(/^[A-Za-z0-9_-]{43}$/);

type Command = fc.AsyncCommand<Model, World>;

/** A call with random inputs, enabled if `isReady`. A failure prints its name and inputs. */
const command = <Input>(
  name: string,
  inputs: fc.Arbitrary<Input>,
  act: (world: World, input: Input, model: Model) => Promise<unknown>,
  isReady: (model: Model) => boolean = () => true,
): fc.Arbitrary<Command> =>
  inputs.map((input) => ({
    check: isReady,
    run: async (model, world) => void (await act(world, input, model)),
    toString: () => `${name}(${fc.stringify(input)})`,
  }));

const users = [0, 1, 2];
const surface = fc.constantFrom<Surface>('rest', 'trpc');
const user = fc.constantFrom(...users);
const isUpper = fc.boolean();
const browser = fc.nat(1);
const password = fc.constantFrom(...passwords, ...passwords.slice(0, 2));
const age = fc.constantFrom(0, 0, 0, 0, 1, 2);
/** A token is often used again. */
const times = fc.constantFrom(1, 2);
/** The distance to the last one. */
const index = fc.constantFrom(0, 0, 0, 1, 1, 2, 3, 4, 6);
const former = fc.option(index, { freq: 2, nil: undefined });
/** A mailed token, sometimes of the wrong kind. */
const [toVerify, toReset] = ['verify-email', 'reset-password'] as const;
const kind = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ verify: toVerify, reset: toReset } as const) },
  fc.constant({ verify: toReset, reset: toVerify } as const),
);
/** Valid values and, at the end, an invalid one. */
const text = <T extends string | null>(...values: T[]) =>
  fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...values.slice(0, -1)) }, fc.constant(values.at(-1) as T));
const change = fc.record(
  {
    name: text('Ada Lovelace', '  Grace Hopper ', 'x'),
    bio: text('Writes about\nengines.', ' 😀 ', '', null, 'x'.repeat(501)),
    location: text('London', '', null, 'x'.repeat(101)),
    website: text('https://example.test/ada', '', null, 'javascript:alert(1)'),
    avatar: fc.oneof(text('https://example.test/a.png', '', null, 'a.png'), index),
  },
  { requiredKeys: [] },
);

const hasSession = ({ sessions }: Model) => sessions.length > 0;
const hasUpload = (model: Model) =>
  hasSession(model) && model.uploads.some(({ owner }) => model.accounts.includes(owner));

/** A call with the session opened this many sessions ago, which may have ended. */
const ofSession = <Input>(
  procedure: string,
  inputs: fc.Arbitrary<Input>,
  expected: (model: Model, session: Session, input: Input, world: World) => Answer,
  inputOf: (world: World, input: Input) => unknown = (_, input) => input,
  isReady = hasSession,
) =>
  command(
    procedure,
    fc.record({ surface, session: index, input: inputs }),
    (world, { surface, session: index, input }, model) => {
      const session = world.session(index);
      const sent = inputOf(world, input);
      return world.call(surface, procedure, sent, expected(model, session, input, world), { session: session.token });
    },
    isReady,
  );

const nothing = fc.constant(undefined);
const mailing = (procedure: 'auth.forgotPassword' | 'auth.resendVerification', method: 'forgot' | 'resend') =>
  command(procedure, fc.record({ surface, user, isUpper }), async (world, { surface, user, isUpper }, model) => {
    await world.settle(user);
    const email = world.spelled(user, isUpper);
    await world.call(surface, procedure, { email }, model[method](email));
    world.mayMail(world.email(user));
  });

const changeOf = (world: World, { avatar, ...rest }: { avatar?: string | number | null | undefined }) => {
  const url = typeof avatar === 'number' ? (world.uploads.length > 0 ? world.upload(avatar).url.value : '') : avatar;
  return { ...rest, ...(url !== undefined && { avatar: url }) } as Record<string, string | null>;
};

const register = command(
  'auth.register',
  fc.record({ surface, user, isUpper, browser, name: fc.constantFrom('Ada Lovelace', ' Ada ', ' x '), password }),
  async (world, { surface, user, isUpper, browser, name, password }, model) => {
    await world.settle(user);
    const input = { email: world.spelled(user, isUpper), name, password };
    const options = { browser: world.browser(browser) };
    await world.call(surface, 'auth.register', input, model.register(input, browser), options);
    world.mayMail(world.email(user));
  },
);

const verify = command(
  'auth.verifyEmail',
  fc.record({ surface, kind, age, browser }),
  async (world, { surface, kind, age, browser }, model) => {
    const { mail, token } = await world.mail(kind.verify, age);
    const options = { browser: world.browser(browser) };
    await world.call(surface, 'auth.verifyEmail', { token }, model.verify(mail, browser), options);
  },
);

const logIn = command(
  'auth.login',
  fc.record({ surface, user, isUpper, password, former }),
  (world, { surface, user, isUpper, password, former }, model) => {
    const input = { email: world.spelled(user, isUpper), password };
    const session = former === undefined || model.sessions.length === 0 ? undefined : world.session(former);
    return world.call(surface, 'auth.login', input, model.login(input, session), { session: session?.token });
  },
);

const reset = command(
  'auth.resetPassword',
  fc.record({
    surface,
    times,
    kind,
    age,
    user: fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, user),
    isUpper,
    password,
  }),
  async (world, { surface, times, kind, age, user, isUpper, password }, model) => {
    const { mail, token } = await world.mail(kind.reset, age);
    const address = user === null ? mail.to : world.email(user);
    const input = { email: isUpper ? address.toUpperCase() : address, password };
    for (let i = 0; i < times; i++)
      await world.call(surface, 'auth.resetPassword', { ...input, token }, model.reset(mail, input));
    world.mayMail(address);
  },
);

const disown = command('account.notMe', fc.record({ surface, age }), async (world, { surface, age }, model) => {
  const { mail, token } = await world.mail('verify-email', age);
  await world.call(surface, 'account.notMe', { token }, model.notMe(mail));
  world.mayMail(mail.to);
});

const throughProvider = command(
  'provider',
  fc.record({ user, isUpper, vouched: fc.boolean(), browser, former }),
  async (world, { user, isUpper, vouched, browser, former }, model) => {
    await world.settle(user);
    const session = former === undefined || model.sessions.length === 0 ? undefined : world.session(former);
    await world.provider(world.spelled(user, isUpper), vouched, browser, session);
    world.mayMail(world.email(user));
  },
);

const look = command('users.get', fc.record({ surface, index }), async (world, { surface, index }, model) => {
  const known = model.sessions.map(({ account }) => account);
  const account = known[index % known.length];
  if (account?.id.isKnown) await world.call(surface, 'users.get', { id: account.id.value }, model.user(account));
});

const send = command(
  'put',
  fc.record({ index, isRight: fc.boolean() }),
  async (world, { index, isRight }) => {
    const upload = world.upload(index);
    // It works for one file.
    if (!upload.address || upload.sent || upload.state === 'removed') return;
    const bytes = Buffer.alloc(bytesOf(upload));
    if (isRight)
      bytes.write(upload.contentType === 'image/png' ? '89504e47' : Buffer.from('%PDF-').toString('hex'), 'hex');
    const { status } = await put(upload.address.value, bytes, { 'content-type': upload.contentType });
    expect(status).toBe(200);
    upload.sent = isRight ? 'as declared' : 'other';
  },
  hasUpload,
);

const commands: [weight: number, fc.Arbitrary<Command>][] = [
  [2, register],
  [2, verify],
  [1, mailing('auth.resendVerification', 'resend')],
  [2, mailing('auth.forgotPassword', 'forgot')],
  [4, reset],
  [1, disown],
  [3, logIn],
  [2, throughProvider],
  [2, ofSession('auth.logout', nothing, (model, session) => model.logout(session))],
  [1, ofSession('auth.logoutAll', nothing, (model, session) => model.logoutAll(session))],
  [1, ofSession('sessions.list', nothing, (model, session) => model.listSessions(session))],
  [
    2,
    command(
      'sessions.end',
      fc.record({ surface, index, other: index }),
      (world, { surface, index, other }) => world.endSession(surface, world.session(index), world.session(other)),
      hasSession,
    ),
  ],
  [2, ofSession('profile.get', nothing, (model, session) => model.profile(session))],
  [
    3,
    ofSession(
      'profile.update',
      change,
      (model, session, input, world) => model.update(session, changeOf(world, input)),
      changeOf,
    ),
  ],
  [
    1,
    command('users.list', fc.record({ surface, q: fc.boolean() }), (world, { surface, q }) => world.list(surface, q)),
  ],
  [1, look],
  [
    1,
    ofSession(
      'users.endSessions',
      index,
      (model, session) => model.endSessionsOf(session),
      (world, index) => ({ id: world.session(index).account.id.toString() }),
    ),
  ],
  [
    2,
    ofSession(
      'upload.presign',
      fc.record({
        filename: fc.constant('a'),
        contentType: fc.constantFrom('image/png', 'application/pdf', 'text/html'),
        size: fc.constantFrom(30_000, 45_000, MAX_UPLOAD, MAX_UPLOAD + 1),
      }),
      (model, session, input) => model.presign(session, input),
    ),
  ],
  [
    2,
    command(
      'upload.image',
      fc.record({ surface, index, type: fc.constantFrom('avatar' as const, 'post' as const) }),
      (world, { surface, index, type }) => world.image(surface, world.session(index), type),
      hasSession,
    ),
  ],
  [1, send],
  [
    1,
    ofSession(
      'upload.confirm',
      index,
      (model, session, index, world) => model.confirm(session, world.upload(index)),
      (world, index) => ({ key: keyOf(world.upload(index).url.value) }),
      hasUpload,
    ),
  ],
  [
    1,
    command(
      'upload.list',
      fc.record({ surface, index }),
      (world, { surface, index }) => world.kept(surface, world.session(index)),
      hasSession,
    ),
  ],
  [
    1,
    ofSession(
      'upload.remove',
      index,
      (model, session, index, world) => model.remove(session, world.upload(index)),
      (world, index) => ({ name: keyOf(world.upload(index).url.value).replace('uploads/', '') }),
      hasUpload,
    ),
  ],
  [1, ofSession('upload.usage', nothing, (model, session) => model.usage(session))],
];

onBothStacks(
  (stack) => {
    /** Two registered users, one of them verified, logged in twice and able to reset; then the sequence. */
    const sequence = fc.asyncProperty(
      // Without the library's bias towards short sequences: a few must find much.
      fc.noBias(
        fc.commands(
          commands.flatMap(([weight, one]) => Array<fc.Arbitrary<Command>>(weight).fill(one)),
          { maxCommands: LONGEST, size: 'max' },
        ),
      ),
      async (sequence) => {
        const world = new World(stack());
        const { model } = world;
        for (const user of [1, 0]) {
          const input = { email: world.email(user), name: 'Ada Lovelace', password: passwords[0] as string };
          await world.call('rest', 'auth.register', input, model.register(input, 0), { browser: world.browser(0) });
          world.mayMail(world.email(user));
        }
        const { mail, token } = await world.mail('verify-email', 0);
        await world.call('rest', 'auth.verifyEmail', { token }, model.verify(mail, 0), { browser: world.browser(0) });
        for (const surface of ['rest', 'trpc'] as const) {
          const input = { email: world.email(0), password: passwords[0] as string };
          await world.call(surface, 'auth.login', input, model.login(input));
        }
        await world.call('rest', 'auth.forgotPassword', { email: world.email(0) }, model.forgot(world.email(0)));
        world.mayMail(world.email(0));
        await fc.asyncModelRun(() => ({ model, real: world }), sequence);
        await world.compareStored();
      },
    );

    test(
      `random calls answer and change data as the contract says (FUZZ_SEED=${seed})`,
      async () => {
        const numRuns = Math.ceil((SEQUENCES * factor) / LANES);
        const lanes = await Promise.all(
          Array.from({ length: LANES }, (_, lane) =>
            fc.check(sequence, { seed: seed + lane, numRuns, endOnFailure: true }),
          ),
        );
        const failed = lanes.find((lane) => lane.failed);
        // Runs once more alone, to shrink the failing sequence.
        if (failed)
          await fc.assert(sequence, {
            seed: failed.seed,
            path: failed.counterexamplePath ?? '',
            numRuns,
            interruptAfterTimeLimit: 60_000,
          });
        expect(failed?.errorInstance).toBeUndefined();
      },
      timeLimit,
    );
  },
  {
    env: {
      ...unlimited,
      ...environmentFor(provider),
      LIMIT_MAIL_REQUEST: '100000/3600',
      LIMIT_IDP_START: '100000/900',
      UPLOAD_QUOTA: String(QUOTA),
      UPLOAD_MAX_BYTES: String(MAX_UPLOAD),
      IMAGE_SIZES: 'off',
      SMTP_URL: smtp.url,
      MAIL_FROM: 'Accounts <no-reply@accounts.test>',
    },
  },
);
