import { type ErrorCode, ServiceError } from '../errors.ts';
import { count } from '../telemetry/metrics.ts';
import type { ExternalLogin } from './external-login.ts';
import type { Login } from './sessions.ts';

const outcomes = ['success', 'wrong_password', 'unverified', 'limited', 'unavailable', 'cancelled', 'failed'] as const;
type Outcome = (typeof outcomes)[number];

const outcomeOfResult: Record<ExternalLogin['result'], Outcome> = {
  'logged-in': 'success',
  cancelled: 'cancelled',
  failed: 'failed',
  'email-unverified': 'unverified',
  'verification-sent': 'unverified',
};

const outcomeOfCode: Partial<Record<ErrorCode, Outcome>> = {
  INVALID_CREDENTIALS: 'wrong_password',
  EMAIL_NOT_VERIFIED: 'unverified',
  RATE_LIMITED: 'limited',
  SERVICE_UNAVAILABLE: 'unavailable',
};

const add = (method: string, outcome: Outcome, by?: number) => count('account_logins_total', { method, outcome }, by);

/** Counts a login by its outcome, also where it rejects. */
function counted<T>(method: string, login: Promise<T>, outcomeOf: (result: T) => Outcome): Promise<T> {
  return login.then(
    (result) => {
      add(method, outcomeOf(result));
      return result;
    },
    (error: unknown) => {
      add(method, (error instanceof ServiceError && outcomeOfCode[error.code]) || 'failed');
      throw error;
    },
  );
}

interface Logins<Password extends unknown[], Return extends { provider: string }> {
  logIn(...given: Password): Promise<Login>;
  finishExternalLogin(returned: Return): Promise<ExternalLogin>;
}

/** The same logins, counted for the metrics. `providers`: a caller may name another over tRPC. */
export const countLogins = <Password extends unknown[], Return extends { provider: string }>(
  { logIn, finishExternalLogin }: Logins<Password, Return>,
  providers: ReadonlyMap<string, unknown>,
): Logins<Password, Return> => {
  for (const method of ['password', ...providers.keys()]) for (const outcome of outcomes) add(method, outcome, 0);
  return {
    logIn: (...given) => counted('password', logIn(...given), () => 'success'),

    finishExternalLogin(returned) {
      const finished = finishExternalLogin(returned);
      const { provider } = returned;
      return providers.has(provider) ? counted(provider, finished, ({ result }) => outcomeOfResult[result]) : finished;
    },
  };
};
