import { setTimeout as pause } from 'node:timers/promises';
import { type Call, callerOf, type Reply } from '../contract/callers.ts';
import { browserIn, PASSWORD, sessionIn } from '../contract/scenario.ts';
import { freshEmail } from '../rig/address.ts';
import type { Action, Entry, Outcome } from '../rig/history.ts';
import { until } from '../rig/until.ts';
import { png } from '../uploads/corpus.ts';
import { imageForm, keyOf, type Uploading } from '../uploads/storage.ts';

/** Limits that a load from one machine does not reach. */
export const unlimited = {
  LIMIT_LOGIN: '100000/900',
  LIMIT_MAIL: '100000/3600',
  LIMIT_INBOX: '100000/3600',
  LIMIT_TOKEN: '100000/900',
  LIMIT_UPLOAD: '100000/3600',
  LIMIT_REGISTER: '100000/900',
};

export interface Load {
  /** Every call so far, in the order in which they ended. */
  readonly history: Entry[];
  /** Ends the load: each user finishes its step, then looks at its profile and logs in once more. */
  finish(): Promise<void>;
}

interface UserState {
  email: string;
  browser: string | undefined;
  /** The last that may be valid. */
  passwords: string[];
  sessions: string[];
  /** Ended, as far as this user knows: tried again now and then. */
  ended: string[];
  usedToken: string | undefined;
  changes: number;
  isLockedOut: boolean;
}

const withoutAnswer = (error: unknown) => error instanceof TypeError;

/** Users who register, log in and out, change their profile, upload and reset their password, each at a random instance. */
export function startLoad(uploading: Uploading, { users = 16 } = {}): Load {
  const { stack } = uploading;
  const history: Entry[] = [];
  let isOver = false;

  /** Records what a call brings; resolves to undefined where no answer came. */
  const record = async (
    entry: Pick<Entry, 'action' | 'user' | 'session' | 'token' | 'password' | 'value'>,
    ask: (url: string) => Promise<Partial<Entry> & { reply: Reply | undefined }>,
  ): Promise<Reply | undefined> => {
    const { url } = stack.services[Math.floor(Math.random() * stack.services.length)] ?? stack;
    const start = performance.now();
    const answer = await ask(url).catch((error: unknown) => {
      if (withoutAnswer(error)) return { reply: undefined, status: undefined };
      throw error;
    });
    const { reply, ...found } = answer;
    history.push({ ...entry, start, end: performance.now(), status: reply?.status, ...found });
    // A killed instance is tried again, but not as fast as it refuses.
    if (!reply) await pause(50);
    return reply;
  };

  const act = (
    action: Action,
    procedure: string,
    input: unknown,
    known: Pick<Entry, 'user' | 'session' | 'token' | 'password' | 'value'>,
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
      const data = (await response.json()) as { url?: string };
      const reply = { status: response.status } as Reply;
      return { reply, value: data.url && keyOf(data.url) };
    });

  const again = async (ask: () => Promise<Reply | undefined>) => {
    for (let tries = 0; tries < 20; tries++) {
      const reply = await ask();
      if (reply && reply.status !== 503) return reply;
      await pause(50);
    }
    throw new Error('no instance answers');
  };

  const mailed = async (user: string, subject: string, after: number) => {
    const mail = await until(
      () =>
        stack.smtp?.mails().find((one) => one.to.includes(user) && one.subject.startsWith(subject) && one.at > after),
      { within: 45_000, what: `a mail "${subject}" to ${user}` },
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
    // This user can go on no longer; whether it should have been able to, the checker finds out.
    user.isLockedOut = true;
  };

  const endSessions = (user: UserState, ended: string[]) => {
    user.sessions = user.sessions.filter((session) => !ended.includes(session));
    user.ended = [...ended, ...user.ended].slice(0, 5);
  };

  const resetPassword = async (user: UserState) => {
    const { email } = user;
    const asked = performance.now();
    await again(() => act('forgot', 'auth.forgotPassword', { email }, { user: email }));
    const token = await mailed(email, 'Reset', asked);
    const password = `Difference-Engine-${history.length}`;
    const known = { user: email, token, password };
    const reply = await act('reset', 'auth.resetPassword', { email, token, password }, known);
    user.passwords = reply?.status === 200 ? [password] : [password, ...user.passwords];
    // Without an answer it may still be good.
    user.usedToken = reply?.status === 200 ? token : undefined;
    endSessions(user, user.sessions);
    await logIn(user);
  };

  const read = (user: string, session: string) =>
    act('read', 'profile.get', undefined, { user, session }, { found: ({ data }) => ({ value: data.user?.bio }) });

  const steps: ((user: UserState, session: string) => Promise<unknown>)[] = [
    ...Array(4).fill((user: UserState, session: string) => {
      const value = `${user.changes++}`;
      return act('change', 'profile.update', { bio: value }, { user: user.email, session, value });
    }),
    ...Array(3).fill(({ email }: UserState, session: string) => read(email, session)),
    (user) => logIn(user),
    ({ email }, session) => upload(email, session),
    async (user, session) => {
      await act('logout', 'auth.logout', undefined, { user: user.email, session });
      endSessions(user, [session]);
    },
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
      // Without an answer there may be no account: the next address.
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
      // New users all the time: registrations are a part of the load.
      for (let step = 0; step < 25 && !isOver && !user.isLockedOut; step++) {
        if (user.sessions.length === 0) await logIn(user);
        const session = user.sessions[step % user.sessions.length];
        if (session === undefined) break;
        await steps[Math.floor(Math.random() * steps.length)]?.(user, session);
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
    async finish() {
      isOver = true;
      await lives;
    },
  };
}

/** What is stored and delivered, once the last mail is out. */
export async function outcomeOf({ stack, objects }: Uploading, crashes: number[] = []): Promise<Outcome> {
  const isIdle = async () =>
    (await stack.database("select id from outbox where state = 'pending' limit 1")).length === 0;
  await until(isIdle, { within: 60_000, what: 'the end of all mails' });
  const rows = await stack.database<{ email: string; email_verified: number; bio: string | null }>(
    'select email, email_verified, bio from users',
  );
  return {
    users: rows.map(({ email, email_verified, bio }) => ({ email, verified: email_verified === 1, value: bio ?? '' })),
    objects: await objects.keys(),
    mails: stack.smtp?.mails() ?? [],
    crashes,
  };
}

/** Calls that failed, where no instance was killed: without an answer, or refused although nothing was wrong with them. */
export const failures = (history: Entry[]): string[] =>
  history
    .filter(({ action, status = 0, token, start }) => {
      // Whether a session had ended, `violations` knows.
      if ((status >= 200 && status < 300) || status === 401) return false;
      const isSpent = history.some((one) => one.token === token && one.status === 200 && one.end < start);
      return !(action === 'reset' && status === 400 && isSpent);
    })
    .map(({ action, user, status = 'none' }) => `${action} of ${user}: ${status}`);

/** How many acknowledged calls of each kind a history has, and how many have no answer. */
export function summary(history: Entry[]): string {
  const done = Map.groupBy(
    history.filter(({ status = 0 }) => status >= 200 && status < 300),
    ({ action }) => action,
  );
  const lost = history.filter(({ status }) => status === undefined).length;
  return `${[...done].map(([action, entries]) => `${action} ${entries.length}`).join(', ')}; without an answer ${lost}`;
}
