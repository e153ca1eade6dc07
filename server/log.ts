import { type Logger, type LoggerOptions, pino } from 'pino';
import pretty from 'pino-pretty';
import type { Config } from './config.ts';

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error' | 'fatal'>;

/** With something before the @ that is no slash: folders of packages begin with one. */
const mailAddress = /[^\s'"<>(),;:=]+(?<!\/)@[^\s'"<>(),;:=]+/g;

/** A database error quotes values and statements: what may be personal in it is taken out before it is logged. */
const withoutPersonalData = (text: string): string =>
  text.replace(mailAddress, '[address]').replace(/Duplicate entry '.*?' for key/g, "Duplicate entry '…' for key");

interface LoggedError {
  type: string;
  message: string;
  code?: unknown;
  stack?: string | undefined;
  cause?: LoggedError;
}

/** Only these fields: drivers hang statements with their values on their errors. */
function loggedError(error: unknown, depth = 0): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: withoutPersonalData(String(error)) };
  const { code } = error as { code?: unknown };
  return {
    type: error.name,
    message: withoutPersonalData(error.message),
    ...(code !== undefined && { code }),
    stack: error.stack && withoutPersonalData(error.stack),
    ...(error.cause !== undefined && depth < 3 && { cause: loggedError(error.cause, depth + 1) }),
  };
}

/** Pino: JSON lines in production, readable lines elsewhere. Written in the background; `flush` before the process ends. */
export function createLog({ production, logLevel }: Pick<Config, 'production' | 'logLevel'>): Logger {
  const options: LoggerOptions = {
    level: logLevel,
    base: null,
    serializers: { err: (error: unknown) => loggedError(error) },
  };
  if (!production) return pino(options, readableLines());
  const destination = pino.destination({ dest: 1, sync: false, minLength: 4096, periodicFlush: 500 });
  // A full disk or a closed pipe costs log lines, never requests.
  destination.on('error', () => undefined);
  return pino(options, destination);
}

/** A request on one line, its id and user behind it. */
const readableLines = () =>
  pretty({
    sync: true,
    singleLine: true,
    translateTime: 'HH:MM:ss.l',
    ignore: 'method,route,status,ms',
    messageFormat: ({ msg, method, route, status, ms }) =>
      route === undefined ? String(msg ?? '') : `${status} ${method} ${route} in ${ms} ms`,
  });
