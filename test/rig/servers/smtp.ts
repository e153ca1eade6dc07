import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import PostalMime from 'postal-mime';
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server';
import { type Mail, type MailQuery, matches } from '../observe/mail.ts';
import { inTime, WAIT_MS } from '../until.ts';
import { freePort } from './port.ts';

/**
 * The sink's behaviour: take every mail; answer 550 or 451 to each recipient; answer 550 to the sender, 554 to the message, or,
 * like a relay that does not know the client, 550 5.7.1 to the recipient; answer 535 to credentials; accept a connection
 * and never greet; read a whole mail, then cut the connection without an answer and without keeping the mail; read a whole
 * mail, and take it at the next call of behave(); take every mail, but delay each answer by this many ms; or answer a given
 * text to each recipient.
 */
export type Behaviour =
  | 'accept'
  | 'refuse-permanently'
  | 'refuse-temporarily'
  | 'refuse-sender'
  | 'refuse-message'
  | 'refuse-relay'
  | 'refuse-credentials'
  | 'hang-at-greeting'
  | 'drop-after-data'
  | 'hold'
  | { slow: number }
  | { refusal: Refusal };

export interface ReceivedMail extends Mail {
  raw: string;
  /** When it was taken, as performance.now(). */
  at: number;
}

/** One action of the sink. `to` is empty before a recipient was named. */
export interface Attempt {
  outcome: 'accepted' | 'refused' | 'hung' | 'dropped' | 'held';
  to: string[];
  /** Of a mail that was read, but not kept. */
  messageId?: string;
}

export interface SmtpSink {
  readonly url: string;
  readonly port: number;
  /** The taken mails, oldest first: all, or those to an address. */
  mails(to?: string): readonly ReceivedMail[];
  /** The first matching mail; waits at most `within` ms (30 s). */
  waitFor(query: MailQuery & { within?: number }): Promise<ReceivedMail>;
  /** All actions so far, oldest first, including refused mails and hanging clients. */
  attempts(): Attempt[];
  /** Resolves once this many attempts had this outcome, at most `within` ms from now (30 s). */
  waitForAttempts(query: { outcome: Attempt['outcome']; count?: number; within?: number }): Promise<Attempt[]>;
  behave(behaviour: Behaviour): void;
  /** From now on mails are taken only from clients that logged in with one of these passwords; before, from any. */
  accept(...passwords: string[]): void;
  /** Refuses connections from now on and cuts open ones. Mails and behaviour stay. */
  stop(): Promise<void>;
  /** Listens again on the same port. */
  start(): Promise<void>;
}

const refusals = {
  'refuse-permanently': { responseCode: 550, message: '5.1.1 No such user here' },
  'refuse-temporarily': { responseCode: 451, message: '4.3.0 Try again later' },
  'refuse-relay': { responseCode: 550, message: '5.7.1 Relaying denied' },
};
function refusalOf(behaviour: Behaviour): Refusal | undefined {
  if (typeof behaviour === 'object') return 'refusal' in behaviour ? behaviour.refusal : undefined;
  return behaviour in refusals ? refusals[behaviour as keyof typeof refusals] : undefined;
}

const loginRequired = { responseCode: 530, message: '5.7.0 Authentication required' };
const senderRefusal = { responseCode: 550, message: '5.1.8 Sender address rejected' };
const credentialsRefusal = { responseCode: 535, message: '5.7.8 Authentication credentials invalid' };
const messageRefusal = { responseCode: 554, message: '5.6.0 Message refused' };

/** A mail server on 127.0.0.1 that keeps mails and can misbehave on demand. */
export async function startSmtpSink(): Promise<SmtpSink> {
  const port = await freePort();
  const mails: ReceivedMail[] = [];
  /** By recipient, because tests poll for their mails among thousands. */
  const received = new Map<string, ReceivedMail[]>();
  const attempts: Attempt[] = [];
  const changes = new EventEmitter().setMaxListeners(0);
  let behaviour: Behaviour = 'accept';
  let change = Promise.withResolvers<void>();
  let passwords: string[] | undefined;
  const isUnknown = (password: string) => passwords?.includes(password) === false;

  const note = (outcome: Attempt['outcome'], to: string[], messageId?: string) => {
    attempts.push({ outcome, to, ...(messageId !== undefined && { messageId }) });
    changes.emit('change');
  };

  const keep = (mail: ReceivedMail) => {
    mails.push(mail);
    for (const to of mail.to.map((address) => address.toLowerCase())) {
      received.set(to, [...(received.get(to) ?? []), mail]);
    }
  };
  const mailsTo = (address: string) => received.get(address.toLowerCase()) ?? [];

  const receive = async (stream: SMTPServerDataStream, session: SMTPServerSession, cut: () => void) => {
    const to = session.envelope.rcptTo.map(({ address }) => address);
    const raw = await buffer(stream);
    if (behaviour === 'drop-after-data') {
      cut();
      note('dropped', to, (await parse(raw, to)).messageId);
      return;
    }
    if (behaviour === 'refuse-message') {
      note('refused', to);
      throw answerOf(messageRefusal);
    }
    if (behaviour === 'hold') {
      note('held', to);
      await change.promise;
    }
    if (typeof behaviour === 'object' && 'slow' in behaviour) await pause(behaviour.slow);
    keep(await parse(raw, to));
    note('accepted', to);
  };

  const listen = () =>
    openListener(port, {
      greet(proceed) {
        if (behaviour === 'hang-at-greeting') note('hung', []);
        else proceed();
      },
      refusal(address) {
        const answer = refusalOf(behaviour);
        if (answer) note('refused', [address]);
        return answer;
      },
      credentialsRefusal(password) {
        if (behaviour !== 'refuse-credentials' && !isUnknown(password)) return undefined;
        note('refused', []);
        return credentialsRefusal;
      },
      senderRefusal(password) {
        if (behaviour !== 'refuse-sender' && !isUnknown(password)) return undefined;
        note('refused', []);
        return isUnknown(password) ? loginRequired : senderRefusal;
      },
      receive,
    });
  let close: (() => Promise<void>) | undefined = await listen();

  const wait = async <T>(find: () => T | undefined, within: number, what: string): Promise<T> => {
    const { promise, resolve } = Promise.withResolvers<T>();
    const look = () => {
      const found = find();
      if (found !== undefined) resolve(found);
    };
    changes.on('change', look);
    look();
    return inTime(promise, { within, what }).finally(() => changes.off('change', look));
  };

  return {
    url: `smtp://127.0.0.1:${port}`,
    port,
    mails: (to) => (to === undefined ? [...mails] : mailsTo(to)),
    waitFor({ within = WAIT_MS, ...query }) {
      const find = () => mailsTo(query.to).find((mail) => matches(mail, query));
      return wait(find, within, `a mail to ${query.to}, subject ${query.subject ?? 'any'}`);
    },
    attempts: () => [...attempts],
    waitForAttempts({ outcome, count = 1, within = WAIT_MS }) {
      const find = () => {
        const found = attempts.filter((attempt) => attempt.outcome === outcome);
        return found.length >= count ? found : undefined;
      };
      return wait(find, within, `${count} delivery attempts that were ${outcome}`);
    },
    behave(next) {
      behaviour = next;
      change.resolve();
      change = Promise.withResolvers<void>();
    },
    accept(...accepted) {
      passwords = accepted;
    },
    async stop() {
      await close?.();
      close = undefined;
    },
    async start() {
      close ??= await listen();
    },
  };
}

export interface Refusal {
  responseCode: number;
  message: string;
}

const answerOf = ({ message, responseCode }: Refusal) => Object.assign(new Error(message), { responseCode });

interface Handlers {
  /** Sends the greeting, or not. */
  greet(proceed: () => void): void;
  /** The answer to a refused recipient. */
  refusal(address: string): Refusal | undefined;
  /** The answer to refused credentials; credentials are optional. */
  credentialsRefusal(password: string): Refusal | undefined;
  /** The answer to a refused sender; the password is empty without a login. */
  senderRefusal(password: string): Refusal | undefined;
  /** Takes a mail; `cut` closes the connection. */
  receive(stream: SMTPServerDataStream, session: SMTPServerSession, cut: () => void): Promise<void>;
}

/** Listens on the port; resolves to a function that closes it with all connections. */
async function openListener(
  port: number,
  { greet, refusal, credentialsRefusal, senderRefusal, receive }: Handlers,
): Promise<() => Promise<void>> {
  const sockets = new Set<Socket>();
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    disableReverseLookup: true,
    onConnect: (_session, done) => greet(done),
    onAuth({ password }, _session, done) {
      const answer = credentialsRefusal(password ?? '');
      done(answer && answerOf(answer), { user: password ?? '' });
    },
    onRcptTo({ address }, _session, done) {
      const answer = refusal(address);
      done(answer && answerOf(answer));
    },
    onMailFrom(_address, { user = '' }, done) {
      const answer = senderRefusal(user);
      done(answer && answerOf(answer));
    },
    onData(stream, session, done) {
      const cut = () => {
        for (const socket of sockets) if (socket.remotePort === session.remotePort) socket.destroy();
      };
      receive(stream, session, cut).then(() => done(), done);
    },
  });
  server.server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const { promise: listening, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(port, '127.0.0.1', () => resolve());
  await listening;
  // Later errors belong to single connections, such as those of a client that gives up.
  server.off('error', reject).on('error', () => undefined);

  return () => {
    const { promise: closed, resolve: done } = Promise.withResolvers<void>();
    server.close(() => done());
    for (const socket of sockets) socket.destroy();
    return closed;
  };
}

async function parse(raw: Buffer, to: string[]): Promise<ReceivedMail> {
  const { from, subject = '', text = '', html = '', messageId = '' } = await PostalMime.parse(raw);
  return {
    to,
    from: from?.address ?? '',
    subject,
    text,
    html,
    messageId,
    raw: raw.toString('utf8'),
    at: performance.now(),
  };
}
