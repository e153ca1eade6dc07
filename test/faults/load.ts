import { setTimeout as pause } from 'node:timers/promises';
import pLimit from 'p-limit';
import { type Call, callerOf, ForeignAnswer, type Reply } from '../contract/rig/callers.ts';
import { browserIn, PASSWORD, sessionIn } from '../contract/rig/scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { imageForm, keyOf, type Objects } from '../contract/uploads/storage.ts';
import { type Action, type Entry, endedSessions, type Outcome } from '../rig/observe/history.ts';
import { freshEmail } from '../rig/servers/address.ts';
import type { SmtpSink } from '../rig/servers/smtp.ts';
import type { Stack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** Limits that a load from one machine does not reach. */
export const unlimited = {
  LIMIT_LOGIN: '100000/900',
  LIMIT_ACCOUNT: '100000/3600',
  LIMIT_DEVICE: '100000/900',
  LIMIT_CODE: '100000/3600',
  LIMIT_MAIL: '100000/3600',
  LIMIT_MAIL_REQUEST: '100000/3600',
  LIMIT_INBOX: '100000/3600',
  LIMIT_TOKEN: '100000/900',
  LIMIT_UPLOAD: '100000/3600',
  LIMIT_UPLOAD_CHECK: '100000/3600',
  LIMIT_REGISTER: '100000/900',
  LIMIT_CHANGE: '100000/3600',
  LIMIT_ADMINISTRATION: '100000/3600',
  LIMIT_REFRESH: '100000/3600',
};

export interface Load {
  /** All calls so far, in order of their ends. */
  readonly history: Entry[];
  /** Tries all sessions again that ended since an instant of performance.now(); the answers are in the history. */
  tryEnded(since: number): Promise<void>;
  /** Ends the load: each user finishes the current step, then reads the profile and logs in once more. */
  finish(): Promise<void>;
}

interface UserState {
  email: string;
  browser: string | undefined;
  /** The last one that may be valid. */
  passwords: string[];
  sessions: string[];
  /** Ended, as far as this user knows: tried again sometimes. */
  ended: string[];
  usedToken: string | undefined;
  changes: number;
  isLockedOut: boolean;
}

/** The maximum wait for an answer other than 503. */
const PATIENCE_MS = 180_000;
/** The number of clients that use a reset token concurrently. */
const AT_ONCE = 3;

/** The targets of a load: each call goes to a random service, or proxy in front of it. */
interface Loaded {
  stack: { readonly services: readonly { url: string }[]; readonly smtp: Pick<SmtpSink, 'mails'> | undefined };
}

export interface LoadOptions {
  users?: number;
  /** Whether images are uploaded. */
  images?: boolean;
  /** The pause of a user after each step. */
  paceMs?: number;
}

/** Users who register, log in and out, change their profile, upload and reset their password. */
export function startLoad({ stack }: Loaded, { users = 16, images = true, paceMs = 0 }: LoadOptions = {}): Load {
  const history: Entry[] = [];
  let isOver = false;

  /** Records the outcome of a call; resolves to undefined without an answer. */
  const record = async (
    entry: Pick<Entry, 'action' | 'user' | 'session' | 'ended' | 'token' | 'password' | 'value'>,
    ask: (url: string) => Promise<Partial<Entry> & { reply: Reply | undefined }>,
  ): Promise<Reply | undefined> => {
    const { services } = stack;
    const url = services[Math.floor(Math.random() * services.length)]?.url ?? '';
    const start = performance.now();
    const answer = await ask(url).catch((error: unknown) => {
      if (error instanceof ForeignAnswer) return { reply: undefined, proxyStatus: error.status };
      if (error instanceof TypeError) return { reply: undefined };
      throw error;
    });
    const { reply, ...found } = answer;
    history.push({ ...entry, start, end: performance.now(), status: reply?.status, ...found });
    // A killed instance is retried, but not as fast as it refuses.
    if (!reply) await pause(50);
    return reply;
  };

  const act = (
    action: Action,
    procedure: string,
    input: unknown,
    known: Pick<Entry, 'user' | 'session' | 'ended' | 'token' | 'password' | 'value'>,
    { browser, found = () => ({}) }: { browser?: string | undefined; found?: (reply: Reply) => Partial<Entry> } = {},
  ) =>
    record({ action, ...known }, async (url) => {
      const reply = await (callerOf('rest', url) as Call)(procedure, input, { session: known.session, browser });
      return { reply, ...found(reply) };
    });

  const image = png(40, 30);
  const upload = async (user: string, session: string) =>
    record({ action: 'upload', user, session }, async (url) => {
      const response = await fetch(`${url}/api/upload/image`, {
        method: 'POST',
        headers: { cookie: `auth_session=${session}` },
        body: imageForm({ bytes: await image }),
      });
      if (!response.headers.has('x-request-id')) throw new ForeignAnswer(response, await response.text());
      const data = (await response.json()) as { url?: string };
      const reply = { status: response.status } as Reply;
      return { reply, value: data.url && keyOf(data.url) };
    });

  const again = async (ask: () => Promise<Reply | undefined>) => {
    const end = performance.now() + PATIENCE_MS;
    while (performance.now() < end) {
      const reply = await ask();
      if (reply && reply.status !== 503) return reply;
      await pause(50);
    }
    throw new Error('no instance answers');
  };

  const mailed = async (user: string, subject: string, after: number) => {
    const mail = await until(
      () => stack.smtp?.mails(user).find((one) => one.subject.startsWith(subject) && one.at > after),
      { within: 60_000, what: `a mail "${subject}" to ${user}` },
    );
    return new URL(mail.text.match(/https?:\/\/\S+/)?.[0] ?? '').searchParams.get('token') ?? '';
  };

  const logIn = async (user: UserState) => {
    for (const password of user.passwords) {
      const { email } = user;
      const reply = await again(() =>
        act(
          'login',
          'auth.login',
          { email, password },
          { user: email, password },
          {
            found: (reply) => (reply.status === 200 ? { session: sessionIn(reply) } : {}),
          },
        ),
      );
      const session = reply.status === 200 ? sessionIn(reply) : undefined;
      if (!session) continue;
      user.passwords = [password];
      user.sessions.push(session);
      return;
    }
    // This user cannot continue; the checker decides whether that is correct.
    user.isLockedOut = true;
  };

  const endSessions = (user: UserState, ended: string[]) => {
    user.sessions = user.sessions.filter((session) => !ended.includes(session));
    user.ended = [...ended, ...user.ended].slice(0, 5);
  };

  const resetPassword = async (user: UserState) => {
    const { email } = user;
    const requestedAt = performance.now();
    await again(() => act('forgot', 'auth.forgotPassword', { email }, { user: email }));
    const token = await mailed(email, 'Reset', requestedAt);
    // By several clients concurrently: one wins, or none if no answer says so.
    const passwords = Array.from({ length: AT_ONCE }, (_, i) => `Difference-Engine-${history.length}-${i}`);
    const replies = await Promise.all(
      passwords.map((password) =>
        act('reset', 'auth.resetPassword', { email, token, password }, { user: email, token, password }),
      ),
    );
    const winner = passwords[replies.findIndex((reply) => reply?.status === 200)];
    user.passwords = winner === undefined ? [...passwords, ...user.passwords] : [winner];
    // Without an answer it may still be valid.
    user.usedToken = winner && token;
    endSessions(user, user.sessions);
    await logIn(user);
  };

  const read = (user: string, session: string) =>
    act('read', 'profile.get', undefined, { user, session }, { found: ({ data }) => ({ value: data.user?.bio }) });

  const endAnother = async (user: UserState, session: string) => {
    const [ended] = user.sessions.filter((other) => other !== session);
    if (ended === undefined) return;
    const known = { user: user.email, session: ended };
    const listed = await act('listSessions', 'sessions.list', undefined, known);
    const id = listed?.data?.data?.find(({ current }: { current: boolean }) => current)?.id;
    if (id === undefined) return;
    await act('endSession', 'sessions.end', { id }, { user: user.email, session, ended });
    endSessions(user, [ended]);
  };

  const steps: ((user: UserState, session: string) => Promise<unknown>)[] = [
    ...Array(4).fill((user: UserState, session: string) => {
      const value = `${user.changes++}`;
      return act('change', 'profile.update', { bio: value }, { user: user.email, session, value });
    }),
    ...Array(3).fill(({ email }: UserState, session: string) => read(email, session)),
    (user) => logIn(user),
    ({ email }, session) =>
      act(
        'declare',
        'upload.presign',
        { filename: 'a.png', contentType: 'image/png', size: 1 },
        { user: email, session },
        { found: ({ data }) => ({ value: data.key }) },
      ),
    ...(images ? [({ email }: UserState, session: string) => upload(email, session)] : []),
    async (user, session) => {
      await act('logout', 'auth.logout', undefined, { user: user.email, session });
      endSessions(user, [session]);
    },
    endAnother,
    async (user, session) => {
      await act('logoutAll', 'auth.logoutAll', undefined, { user: user.email, session });
      endSessions(user, user.sessions);
    },
    resetPassword,
    ({ email, ended: [session] }) => session && read(email, session),
    ({ email, usedToken: token }) => {
      const password = `Difference-Engine-${history.length}`;
      return token && act('reset', 'auth.resetPassword', { email, token, password }, { user: email, token, password });
    },
  ];

  const join = async (): Promise<UserState> => {
    for (;;) {
      const email = freshEmail('load');
      const input = { email, password: PASSWORD, name: 'Ada Lovelace' };
      const known = { user: email, password: PASSWORD };
      const registered = performance.now();
      const reply = await act('register', 'auth.register', input, known);
      // Without an answer there may be no account: use the next address.
      if (reply?.status !== 201) continue;
      const browser = browserIn(reply);
      const token = await mailed(email, 'Verify', registered);
      await again(() => act('verify', 'auth.verifyEmail', { token }, { user: email, token }, { browser }));
      const fresh = { sessions: [], ended: [], usedToken: undefined, changes: 0, isLockedOut: false };
      return { email, browser, passwords: [PASSWORD], ...fresh };
    }
  };

  const live = async () => {
    while (!isOver) {
      const user = await join();
      // Registrations are a part of the load.
      for (let step = 0; step < 25 && !isOver && !user.isLockedOut; step++) {
        if (user.sessions.length === 0) await logIn(user);
        const session = user.sessions[step % user.sessions.length];
        if (session === undefined) break;
        await steps[Math.floor(Math.random() * steps.length)]?.(user, session);
        if (paceMs > 0) await pause(paceMs);
      }
      await logIn(user);
      const session = user.sessions.at(-1);
      if (session !== undefined) await again(() => read(user.email, session));
    }
  };
  const lives = Promise.all(Array.from({ length: users }, live));
  // Reported by finish().
  lives.catch(() => undefined);

  return {
    history,
    async tryEnded(since) {
      const inTurn = pLimit(users);
      const ended = endedSessions(history).filter(({ at }) => at >= since);
      await Promise.all(ended.map(({ user, session }) => inTurn(() => again(() => read(user, session)))));
    },
    async finish() {
      isOver = true;
      await lives;
    },
  };
}

/** Resolves once no mail is pending. */
export const mailsSent = (database: Stack['database'], within = 60_000): Promise<unknown> =>
  until(async () => (await database("select id from outbox where state = 'pending' limit 1")).length === 0, {
    within,
    what: 'the end of all mails',
  });

/** What is stored and delivered, once the last mail is sent. */
export async function outcomeOf(
  from: Parameters<typeof storedOutcome>[0],
  known: Pick<Outcome, 'crashes' | 'forgotten'> = { crashes: [] },
): Promise<Outcome> {
  await mailsSent(from.stack.database);
  return storedOutcome(from, known);
}

/** What is stored and delivered now. */
export async function storedOutcome(
  { stack: { database, smtp }, objects }: { stack: Pick<Stack, 'database' | 'smtp'>; objects?: Pick<Objects, 'keys'> },
  known: Pick<Outcome, 'crashes' | 'forgotten'>,
): Promise<Outcome> {
  const rows = await database<{ email: string; email_verified: number; bio: string | null }>(
    'select email, email_verified, bio from users',
  );
  const uploads = await database<{ object_key: string }>(
    'select object_key from uploads union all select object_key from upload_variants',
  );
  return {
    users: rows.map(({ email, email_verified, bio }) => ({ email, verified: email_verified === 1, value: bio ?? '' })),
    uploads: uploads.map(({ object_key }) => object_key),
    objects: (await objects?.keys()) ?? [],
    mails: smtp?.mails() ?? [],
    ...known,
  };
}

/** Failed calls while no instance was killed: without an answer, or refused without a reason. */
export const failures = (history: Entry[]): string[] =>
  history
    .filter(({ action, status = 0, token, end }) => {
      // `violations` checks whether a session had ended.
      if ((status >= 200 && status < 300) || status === 401) return false;
      if (action !== 'reset' || status !== 400) return true;
      const uses = history.filter((one) => one.token === token);
      // The winner of concurrent uses may not have its answer yet.
      return uses.length >= AT_ONCE && !uses.some((use) => use.status === 200 && use.start < end);
    })
    .map(({ action, user, status = 'none', start, end }) => {
      return `${action} of ${user}: ${status} after ${Math.round(end - start)} ms`;
    });

/** The numbers of acknowledged calls of each kind, and of those without an answer. */
export function summary(history: Entry[]): string {
  const done = Map.groupBy(
    history.filter(({ status = 0 }) => status >= 200 && status < 300),
    ({ action }) => action,
  );
  const lost = history.filter(({ status }) => status === undefined).length;
  return `${[...done].map(([action, entries]) => `${action} ${entries.length}`).join(', ')}; without an answer ${lost}`;
}
