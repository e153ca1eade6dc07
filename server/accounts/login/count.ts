import { type ErrorCode, ServiceError } from '../../errors.ts';
import type { LoginMethod } from '../../shared/method-names.ts';
import { count } from '../../telemetry/metrics.ts';
import { PASSKEY, PASSWORD } from '../credentials/index.ts';
import { secondFactorKinds } from './second-factors.ts';

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

/** By the `result` of a login, also at a provider. Other results are not logins. */
const outcomeOfResult: Readonly<Record<string, Outcome>> = {
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

const outcomeOfCode: Partial<Record<ErrorCode, Outcome>> = {
  EMAIL_NOT_VERIFIED: 'unverified',
  ACCOUNT_DELETED: 'deleted',
  ACCOUNT_BLOCKED: 'blocked',
  RATE_LIMITED: 'limited',
  SERVICE_UNAVAILABLE: 'unavailable',
};

/** Undefined without a pending login: not counted. */
function outcomeOfError(method: LoginMethod, error: unknown): Outcome | undefined {
  if (!(error instanceof ServiceError)) return 'failed';
  if (error.code === 'UNAUTHENTICATED') return undefined;
  if (error.code === 'INVALID_CREDENTIALS') return method === PASSKEY ? 'wrong_passkey' : 'wrong_password';
  return outcomeOfCode[error.code] ?? 'failed';
}

const add = (method: LoginMethod, outcome: Outcome | undefined, by?: number): void => {
  if (outcome) count('account_logins_total', { method, outcome }, by);
};

/** Counts a login by its outcome, even if it rejects. Results excluded by `isLogin` are not counted. */
export function counted<Result extends { result: string }>(
  method: LoginMethod,
  login: Promise<Result>,
  isLogin: (ended: Result) => boolean = () => true,
): Promise<Result> {
  return login.then(
    (ended) => {
      if (isLogin(ended)) add(method, outcomeOfResult[ended.result]);
      return ended;
    },
    (error: unknown) => {
      add(method, outcomeOfError(method, error));
      throw error;
    },
  );
}

/** Exports every count from the start, with the value 0. */
export function prepareLoginCounts(others: readonly LoginMethod[]): void {
  const methods = new Set<LoginMethod>([PASSWORD, PASSKEY, ...secondFactorKinds, ...others]);
  for (const method of methods) for (const outcome of outcomes) add(method, outcome, 0);
}
