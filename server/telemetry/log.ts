import { Writable } from 'node:stream';
import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino';
import type { Config } from '../config/index.ts';
import { ignored } from './background.ts';
import { traceFields } from './traces.ts';

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error' | 'fatal'>;

/** The maximum length of a message that is searched and logged: a client may have chosen its length. */
const MAX_LENGTH = 1024;
/** PIPE_BUF of Linux: a write of this size to a pipe is atomic, whatever other processes write there. */
const MAX_WRITE = 4096;
/** The maximum number of bytes that wait to be written: later lines are dropped. */
const MAX_WAITING = 16 * 1024 ** 2;
const MAX_FRAMES = 20;
const MAX_FRAME_LENGTH = 500;

const words = /[^\s'"<>(),;:=]+/g;
/** Requires a character other than a slash before the @: a slash means the folder of a scoped package. */
const isMailAddress = (word: string) => /[^/](?:@|%40)./i.test(word);

/** Database errors quote values and statements: everything that may be personal data is removed before logging. */
const withoutPersonalData = (text: string): string =>
  text
    .slice(0, MAX_LENGTH)
    .replace(/Duplicate entry '.*?(?:' for key|$)/gs, "Duplicate entry '…' for key")
    .replace(/".*"(?:\.\.\.)? is not valid JSON/gs, '"…" is not valid JSON')
    .replace(words, (word) => (isMailAddress(word) ? '[address]' : word));

interface LoggedError {
  type: string;
  message: string;
  code?: unknown;
  stack?: string | undefined;
  cause?: LoggedError;
}

/**
 * Logs only these fields, because drivers attach statements with their values to errors, and a thrown value or a cause
 * that is not an Error may be the parameters of a request.
 */
export function loggedError(error: unknown, depth = 0): LoggedError {
  if (typeof error === 'string') return { type: 'string', message: withoutPersonalData(error) };
  if (!(error instanceof Error)) return { type: Object.prototype.toString.call(error).slice(8, -1), message: '' };
  const { code } = error as { code?: unknown };
  const message = withoutPersonalData(error.message);
  return {
    type: error.name,
    message,
    ...(code !== undefined && { code }),
    stack: error.stack && `${error.name}: ${message}${framesOf(error.stack)}`,
    ...(error.cause !== undefined && depth < 3 && { cause: loggedError(error.cause, depth + 1) }),
  };
}

/** An error and its causes in one line. */
export function sentenceOf(error: unknown): string {
  const sentences: string[] = [];
  for (let logged: LoggedError | undefined = loggedError(error); logged; logged = logged.cause) {
    sentences.push([logged.type, logged.code, logged.message].filter(Boolean).join(' '));
  }
  return sentences.join(', because of: ');
}

/** The stack without the message at its beginning, which may be long. */
const framesOf = (stack: string): string =>
  stack
    .slice(-MAX_FRAMES * MAX_FRAME_LENGTH)
    .split('\n')
    .filter((line) => line.startsWith('    at '))
    .slice(-MAX_FRAMES)
    .map((line) => `\n${withoutPersonalData(line)}`)
    .join('');

/**
 * Pino: JSON lines in production, written in the background (`flush` before the process ends); elsewhere readable
 * lines. Writes to standard output, or to `output`.
 */
export async function createLog(
  {
    production,
    logLevel,
    traces,
    processes = 1,
  }: Pick<Config, 'production' | 'logLevel'> & Partial<Pick<Config, 'traces' | 'processes'>>,
  output: DestinationStream = standardOutput(production),
): Promise<Logger> {
  const options: LoggerOptions = {
    level: logLevel,
    base: processes > 1 ? { pid: process.pid } : null,
    ...(traces && { mixin: traceFields }),
    serializers: { err: (error: unknown) => loggedError(error) },
  };
  return pino(options, production ? output : await readableLines(output));
}

function standardOutput(production: boolean): DestinationStream {
  const destination = pino.destination(
    production
      ? { dest: 1, sync: false, minLength: 3072, maxLength: MAX_WAITING, maxWrite: MAX_WRITE, periodicFlush: 500 }
      : { dest: 1, sync: true, maxLength: MAX_WAITING },
  );
  destination.on('drop', ignored('write_log'));
  // A full disk or a closed pipe costs log lines, never requests.
  let isFailing = false;
  destination.on('error', () => {
    isFailing = true;
  });
  destination.on('write', () => {
    isFailing = false;
  });
  // When the process ends pino writes the rest and retries forever on any error. This makes one attempt before that.
  process.prependListener('exit', () => {
    Object.assign(destination, { sync: true }).flush();
    if (isFailing) destination.destroy();
  });
  return destination;
}

/** A request on one line, followed by its id and user. */
async function readableLines(destination: DestinationStream) {
  // Loaded only if used: production starts without it.
  const { default: pretty } = await import('pino-pretty');
  // Never fails: after a first failure pino-pretty would write nothing.
  const lines = new Writable({
    write(line, _encoding, done) {
      destination.write(String(line));
      done();
    },
  });
  return pretty({
    destination: lines,
    singleLine: true,
    translateTime: 'HH:MM:ss.l',
    ignore: 'pid,method,route,status,ms',
    messageFormat: ({ msg, method, route, status, ms }) =>
      route === undefined ? String(msg ?? '') : `${status} ${method} ${route} in ${ms} ms`,
  });
}
