import type { ReceivedMail } from '../servers/smtp.ts';

export type Action =
  | 'register'
  | 'verify'
  | 'login'
  | 'logout'
  | 'logoutAll'
  | 'read'
  | 'change'
  | 'forgot'
  | 'reset'
  | 'listSessions'
  | 'endSession'
  | 'declare'
  | 'upload';

/** One call of a load generator. Times are performance.now(). */
export interface Entry {
  action: Action;
  /** The user's email. */
  user: string;
  start: number;
  end: number;
  /** The HTTP status; undefined without an answer. */
  status: number | undefined;
  /** The answer of a proxy: that of the service is unknown. */
  proxyStatus?: number;
  /** The session that was sent, or that a login opened. */
  session?: string | undefined;
  /** The session that another one ended. */
  ended?: string;
  /** The one-time token that was sent. */
  token?: string;
  /** The password that was registered, tried or set. */
  password?: string;
  /** The written or read value; the key of an upload or its declaration. */
  value?: string | undefined;
}

/** The stored and delivered data once all work has ended. */
export interface Outcome {
  users: { email: string; verified: boolean; value: string }[];
  /** Keys of declared or uploaded objects, and of those in the storage. */
  uploads: string[];
  objects: string[];
  mails: readonly Pick<ReceivedMail, 'to' | 'subject' | 'messageId' | 'text' | 'at'>[];
  /** When a process was killed. */
  crashes: number[];
  /** Spans whose writes the session store has lost: sessions opened then are unknown to it. */
  forgotten?: { from: number; to: number }[];
}

const isDone = ({ status }: Entry) => status !== undefined && status >= 200 && status < 300;
/** The database's deadline: one that passes during the commit is answered 503, and the change may be stored. */
const DEADLINE_MS = 4000;
const isUnknown = ({ status, start, end }: Entry) =>
  status === undefined || (status === 503 && end - start >= DEADLINE_MS);
const mayBeDone = (entry: Entry) => isUnknown(entry) || isDone(entry);

/** While a database dies, a call that was answered 503 may have been executed. */
export const asUnknown = (entry: Entry): Entry => (entry.status === 503 ? { ...entry, status: undefined } : entry);

/** The mails that an action promises, by the beginning of their subjects. */
const promises: Partial<Record<Action, string>> = {
  register: 'Verify your email',
  forgot: 'Reset your password',
  reset: 'Your password for',
};

/** The mails that an action may cause: a login on a device that is new to its user. */
const possible: Partial<Record<Action, string>> = { login: 'New login' };

/** A mail server has a mail a moment before it says so, and a crash is recorded a moment later. */
const NOTED_WITHIN_MS = 1000;

/** Contradictions of history and outcome, as sentences. */
export interface Findings {
  lost: string[];
  /** Done without a call. */
  unasked: string[];
  survived: string[];
  spentTwice: string[];
  uploads: string[];
  mails: string[];
  answers: string[];
}

export function findingsIn(history: Entry[], outcome: Outcome): Findings {
  const users = [...Map.groupBy(history, ({ user }) => user)];
  const ofUsers = (check: (entries: Entry[], outcome: Outcome, user: string) => Iterable<string>) =>
    users.flatMap(([user, entries]) => [...check(entries, outcome, user)]);
  const known = new Set(users.map(([user]) => user));
  const strangers = outcome.mails
    .filter(({ to }) => !to.every((address) => known.has(address)))
    .map(({ to, subject }) => `a mail that nobody asked for: "${subject}" to ${to.join()}`);
  return {
    lost: [...ofUsers(lostSessions), ...ofUsers(refusedPasswords), ...ofUsers(lostChanges)],
    unasked: ofUsers(unaskedUsers),
    survived: ofUsers(revokedSessions),
    spentTwice: ofUsers(spentTwice),
    uploads: ofUsers(lostUploads),
    mails: [...ofUsers(mailsOf), ...strangers],
    answers: history
      .filter(({ status = 0 }) => status >= 500 && status !== 503)
      .map(({ action, user, status }) => `${action} of ${user} was answered ${status}`),
  };
}

/** All of them; none if all is well. */
export const violations = (history: Entry[], outcome: Outcome): string[] =>
  Object.values(findingsIn(history, outcome)).flat();

/** The calls that end a session, certainly or possibly. */
const endingsOf = (login: Entry, entries: Entry[]) =>
  entries.filter((entry) => {
    if (entry.action === 'logout') return entry.session === login.session;
    if (entry.action === 'endSession') return entry.ended === login.session;
    // A concurrent login may be later; one with a former password cannot count as new after a reset.
    if (entry.action === 'logoutAll') return entry.end > login.start;
    return entry.action === 'reset' && entry.password !== login.password && entry.end > login.start;
  });

const loginsOf = (entries: Entry[]) => entries.filter((entry) => entry.action === 'login' && isDone(entry));

/** When a session had certainly ended; Infinity for never. */
const endOf = (login: Entry, entries: Entry[]): number =>
  endingsOf(login, entries)
    .filter((ending) => isDone(ending) && (ending.action !== 'logoutAll' || ending.start >= login.end))
    .reduce((first, { end }) => Math.min(first, end), Number.POSITIVE_INFINITY);

/** The sessions that certainly ended, and when. */
export const endedSessions = (history: Entry[]): { user: string; session: string; at: number }[] =>
  [...Map.groupBy(history, ({ user }) => user)].flatMap(([user, entries]) =>
    loginsOf(entries)
      .map((login) => ({ user, session: login.session ?? '', at: endOf(login, entries) }))
      .filter(({ at }) => at < Number.POSITIVE_INFINITY),
  );

function* revokedSessions(entries: Entry[]): Generator<string> {
  for (const login of loginsOf(entries)) {
    const ended = endOf(login, entries);
    const uses = entries.filter(
      ({ action, session, start }) => action !== 'login' && session === login.session && start > ended,
    );
    for (const use of uses.filter(isDone)) yield `a revoked session of ${use.user} authenticated ${use.action}`;
  }
  // A login that starts after a completed reset, with an earlier password.
  for (const reset of entries.filter((entry) => entry.action === 'reset' && isDone(entry))) {
    const others = entries.filter((entry) => entry.action === 'login' && isDone(entry) && entry.start > reset.end);
    const isSetLater = ({ password, start }: Entry) =>
      entries.some((later) => {
        if (later.action !== 'reset' || later.password !== password || !mayBeDone(later)) return false;
        return later.end > reset.start && later.start < start;
      });
    for (const login of others.filter((entry) => entry.password !== reset.password && !isSetLater(entry)))
      yield `a password of ${login.user} from before a reset opened a session`;
  }
}

function* lostSessions(entries: Entry[], { forgotten = [] }: Outcome): Generator<string> {
  const isForgotten = ({ start, end }: Entry) => forgotten.some(({ from, to }) => end > from && start < to);
  for (const login of loginsOf(entries).filter((login) => !isForgotten(login))) {
    const refused = entries.find(({ action, session, status, start }) => {
      return action !== 'login' && session === login.session && status === 401 && start > login.end;
    });
    if (!refused) continue;
    const endings = endingsOf(login, entries).filter((entry) => entry !== refused && entry.start < refused.end);
    if (!endings.some(mayBeDone)) yield `a session of ${login.user} that nothing has ended was refused`;
  }
}

function* refusedPasswords(entries: Entry[]): Generator<string> {
  for (const login of entries.filter(({ action, status }) => action === 'login' && status === 401)) {
    const setters = entries.filter(({ action }) => action === 'register' || action === 'reset').filter(mayBeDone);
    const valid = possibleValues(
      setters.map(({ password = '', ...entry }) => ({ ...entry, value: password })),
      login,
    );
    if (valid.length === 1 && valid[0] === login.password)
      yield `an acknowledged password of ${login.user} was refused`;
  }
}

function* spentTwice(entries: Entry[]): Generator<string> {
  const resets = entries.filter((entry) => entry.action === 'reset' && isDone(entry));
  for (const [, uses] of Map.groupBy(resets, ({ token }) => token))
    if (uses.length > 1) yield `a reset token of ${uses[0]?.user} was spent ${uses.length} times`;
}

function* lostChanges(entries: Entry[], { users }: Outcome, user: string): Generator<string> {
  const stored = users.find(({ email }) => email === user);
  const isAcknowledged = (action: Action) => entries.some((entry) => entry.action === action && isDone(entry));
  if (isAcknowledged('register') && !stored) yield `the acknowledged registration of ${user} is lost`;
  if (isAcknowledged('verify') && stored && !stored.verified) yield `the acknowledged verification of ${user} is lost`;
  const changes = entries.filter((entry) => entry.action === 'change' && mayBeDone(entry));
  const last = { start: Number.POSITIVE_INFINITY, end: Number.POSITIVE_INFINITY };
  if (stored && !possibleValues(changes, last, '').includes(stored.value))
    yield `an acknowledged change of ${user} is lost: "${stored.value}" is stored`;
  for (const read of entries.filter((entry) => entry.action === 'read' && isDone(entry))) {
    if (!possibleValues(changes, read, '').includes(read.value ?? ''))
      yield `${user} was shown "${read.value}", which was overwritten or never written`;
  }
}

function* unaskedUsers(entries: Entry[], { users }: Outcome, user: string): Generator<string> {
  const isStored = users.some(({ email }) => email === user);
  if (isStored && !entries.some((entry) => entry.action === 'register' && mayBeDone(entry)))
    yield `${user} is stored, but no registration may have succeeded`;
}

function* lostUploads(entries: Entry[], { uploads, objects }: Outcome, user: string): Generator<string> {
  for (const { value = '' } of entries.filter((entry) => entry.action === 'declare' && isDone(entry)))
    if (!uploads.includes(value)) yield `the acknowledged declaration of ${value} by ${user} is lost`;
  for (const { value = '' } of entries.filter((entry) => entry.action === 'upload' && isDone(entry)))
    if (!objects.includes(value)) yield `the acknowledged upload ${value} of ${user} is lost`;
}

/**
 * The values that a read may find: those written before its end, unless an acknowledged later write was answered before
 * its start. A write without an answer ends when it was given up, and never certainly overwrites another.
 */
function possibleValues(writes: Entry[], look: Pick<Entry, 'start' | 'end'>, initial?: string): string[] {
  const first = { action: 'change', user: '', start: -1, end: -1, status: 200, value: initial } as const;
  const begun = [...(initial === undefined ? [] : [first]), ...writes].filter(({ start }) => start < look.end);
  return begun
    .filter((write) => !begun.some((later) => isDone(later) && later.start > write.end && later.end < look.start))
    .map(({ value = '' }) => value);
}

function* mailsOf(entries: Entry[], { mails, crashes }: Outcome, user: string): Generator<string> {
  const received = mails.filter(({ to }) => to.includes(user));
  const subjects = Object.entries({ ...promises, ...possible }) as [Action, string][];
  for (const [action, subject] of subjects) {
    const requests = entries.filter((entry) => entry.action === action && mayBeDone(entry));
    const copies = Map.groupBy(
      received.filter((mail) => mail.subject.startsWith(subject)),
      ({ messageId }) => messageId,
    );
    const promised = action in promises ? requests.filter(isDone).length : 0;
    if (copies.size < promised) yield `of ${promised} mails "${subject}" promised to ${user}, ${copies.size} arrived`;
    const firsts = [...copies.values()].map((mails) => Math.min(...mails.map(({ at }) => at))).sort((a, b) => a - b);
    for (const [i, at] of firsts.entries())
      if (requests.filter(({ start }) => start < at).length <= i)
        yield `a mail that nobody asked for: "${subject}" to ${user}`;
    for (const [id, mails] of copies) {
      const [one, ...more] = mails.sort((a, b) => a.at - b.at);
      if (id === '') yield `a mail to ${user} has no Message-ID`;
      if (more.some(({ text }) => text !== one?.text)) yield `two copies of one mail to ${user} differ`;
      for (const [i, copy] of more.entries()) {
        const from = (mails[i]?.at ?? 0) - NOTED_WITHIN_MS;
        if (!crashes.some((crash) => crash >= from && crash <= copy.at))
          yield `a mail to ${user} came twice without a crash between`;
      }
    }
  }
  const unknown = received.filter(({ subject }) => !subjects.some(([, words]) => subject.startsWith(words)));
  for (const { subject } of unknown) yield `a mail that nobody asked for: "${subject}" to ${user}`;
}
