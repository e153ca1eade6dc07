import { type ErrorCode, ServiceError } from '../errors.ts';
import { count } from '../telemetry/metrics.ts';
import type { FlowEnd } from './flow-outcomes.ts';
import { PASSKEY, PASSWORD } from './login-methods.ts';
import type { Entry, LoginOutcome } from './login-steps.ts';
import { factorOf, type GivenFactor, secondFactorKinds } from './second-factors.ts';

const outcomes = [
  'success',
  'second_factor',
  'wrong_password',
  'wrong_passkey',
  'wrong_code',
  'unverified',
  'deleted',
  'blocked',
  'limited',
  'unavailable',
  'cancelled',
  'failed',
] as const;
type Outcome = (typeof outcomes)[number];

const outcomeOfResult: Partial<Record<(FlowEnd | LoginOutcome)['result'], Outcome>> = {
  'logged-in': 'success',
  'second-factor': 'second_factor',
  'wrong-code': 'wrong_code',
  cancelled: 'cancelled',
  failed: 'failed',
  deleted: 'deleted',
  blocked: 'blocked',
  'no-account': 'failed',
  'not-linked': 'failed',
  'registration-closed': 'failed',
  'email-unverified': 'unverified',
  'verification-sent': 'unverified',
};

type OutcomeOfCode = Partial<Record<ErrorCode, Outcome | 'none'>>;
const outcomeOfCode: OutcomeOfCode = {
  INVALID_CREDENTIALS: 'wrong_password',
  EMAIL_NOT_VERIFIED: 'unverified',
  ACCOUNT_DELETED: 'deleted',
  ACCOUNT_BLOCKED: 'blocked',
  RATE_LIMITED: 'limited',
  SERVICE_UNAVAILABLE: 'unavailable',
};
const outcomeOfPasskey: OutcomeOfCode = { ...outcomeOfCode, INVALID_CREDENTIALS: 'wrong_passkey' };
/** Without a login that waits it is none. */
const outcomeOfSecondStep: OutcomeOfCode = { ...outcomeOfCode, UNAUTHENTICATED: 'none' };

const add = (method: string, outcome: Outcome, by?: number) => count('account_logins_total', { method, outcome }, by);

/** Counts a login by its outcome, also where it rejects; what is no login has none. */
function counted<T>(
  method: string,
  login: Promise<T>,
  outcomeOf: (result: T) => Outcome | undefined,
  codes: OutcomeOfCode = outcomeOfCode,
): Promise<T> {
  return login.then(
    (result) => {
      const outcome = outcomeOf(result);
      if (outcome) add(method, outcome);
      return result;
    },
    (error: unknown) => {
      const outcome = (error instanceof ServiceError && codes[error.code]) || 'failed';
      if (outcome !== 'none') add(method, outcome);
      throw error;
    },
  );
}

const outcomeOfEnd = ({ purpose, result }: FlowEnd) =>
  purpose === 'login' || purpose === 'restore' ? outcomeOfResult[result] : undefined;

const outcomeOfStep = ({ result }: LoginOutcome) => outcomeOfResult[result];

interface Logins<
  Password extends unknown[],
  Assertion extends unknown[],
  Step extends [token: string | undefined, given: GivenFactor, ...unknown[]],
  Return extends { provider: string },
> {
  logIn(...given: Password): Promise<Entry>;
  logInByPasskey(...given: Assertion): Promise<Entry>;
  restore(...given: Password): Promise<Entry>;
  giveSecondFactor(...given: Step): Promise<Exclude<LoginOutcome, { result: 'second-factor' }>>;
  finishExternalLogin(returned: Return): Promise<FlowEnd>;
}

/** The same logins, counted for the metrics. `providers`: a caller may name another over tRPC. */
export const countLogins = <
  Password extends unknown[],
  Assertion extends unknown[],
  Step extends [token: string | undefined, given: GivenFactor, ...unknown[]],
  Return extends { provider: string },
>(
  { logIn, logInByPasskey, restore, giveSecondFactor, finishExternalLogin }: Logins<Password, Assertion, Step, Return>,
  providers: ReadonlyMap<string, unknown>,
): Logins<Password, Assertion, Step, Return> => {
  const methods = new Set([PASSWORD, PASSKEY, ...secondFactorKinds, ...providers.keys()]);
  for (const method of methods) for (const outcome of outcomes) add(method, outcome, 0);
  return {
    logIn: (...given) => counted(PASSWORD, logIn(...given), outcomeOfStep),
    logInByPasskey: (...given) => counted(PASSKEY, logInByPasskey(...given), outcomeOfStep, outcomeOfPasskey),
    restore: (...given) => counted(PASSWORD, restore(...given), outcomeOfStep),
    giveSecondFactor: (...given) =>
      counted(factorOf(given[1]), giveSecondFactor(...given), outcomeOfStep, outcomeOfSecondStep),

    finishExternalLogin(returned) {
      const finished = finishExternalLogin(returned);
      const { provider } = returned;
      return providers.has(provider) ? counted(provider, finished, outcomeOfEnd) : finished;
    },
  };
};
