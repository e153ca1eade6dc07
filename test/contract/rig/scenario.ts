import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshEmail } from '../rig/address.ts';
import { isMutationRun } from '../rig/mutation-run.ts';
import { type Stack, type StackName, type StackOptions, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';
import { type Call, type CallOptions, callerOf, type Reply, type Surface } from './callers.ts';

export const PASSWORD = 'Analytical-Engine-1843';
const HOUR_MS = 60 * 60_000;

export const stackNames = isMutationRun ? (['embedded'] as const) : (['embedded', 'real'] as const);
export const surfaces = isMutationRun ? (['rest'] as const) : (['rest', 'trpc'] as const);

export interface Scenario {
  stack: Stack;
  call: Call;
}

/** Runs the same tests on embedded and on real parts. */
export function onBothStacks(define: (stack: () => Stack, name: StackName) => void, options?: StackOptions): void {
  describe.each(stackNames)('on %s parts', (name) => onStack(name, define, options));
}

export function onStack(
  name: StackName,
  define: (stack: () => Stack, name: StackName) => void,
  options?: StackOptions,
): void {
  if (isMutationRun && name === 'real') {
    test.skip('on real parts');
    return;
  }
  let stack: Stack | undefined;
  beforeAll(async () => {
    stack = await startStack(name, options);
  });
  afterAll(() => stack?.stop());
  define(() => {
    if (!stack) throw new Error('the stack did not start');
    return stack;
  }, name);
}

/** Runs the same tests on both stacks, through both surfaces: the contract does not depend on either. */
export function everywhere(define: (scenario: () => Scenario, surface: Surface) => void, options?: StackOptions): void {
  onBothStacks((stack) => overBoth(stack, define), options);
}

/** Runs the same tests through both surfaces of a stack, beside tests that need one of them only. */
export function overBoth(stack: () => Stack, define: (scenario: () => Scenario, surface: Surface) => void): void {
  describe.each(surfaces)('over %s', (surface) => {
    define(() => ({ stack: stack(), call: callerOf(surface, stack().url) }), surface);
  });
}

export interface Person {
  email: string;
  password: string;
  name: string;
  /** Where there are terms. */
  acceptTerms?: boolean;
}

interface Registered extends Person {
  id: string;
  /** The cookie of the browser that registered. */
  browser: string | undefined;
}

/** Somebody who has registered; nothing verified yet. */
export async function registered({ call }: Scenario, changes: Partial<Person> = {}): Promise<Registered> {
  const person = { email: freshEmail(), password: PASSWORD, name: 'Ada Lovelace', ...changes };
  const reply = await call('auth.register', person);
  expect(reply).toMatchObject({ code: undefined, data: { success: true } });
  return { ...person, id: reply.data.user.id, browser: browserIn(reply) };
}

/** The pages that mailed links lead to, with what is in the subjects of their mails. */
const mailedPages = {
  'verify-email': 'Verify your email',
  'reset-password': 'Reset your password',
  'confirm-email': 'Confirm your new email',
  'undo-email-change': 'The email of your account',
  'not-me': 'New login',
  register: 'You are invited',
};

/** The token in the `count`th mail to an address whose link leads to a page. */
export async function mailedToken(stack: Stack, to: string, page: keyof typeof mailedPages, count = 1) {
  const { text } = await stack.waitForMail({ to, subject: mailedPages[page], count });
  const link = new URL(text.match(/https?:\/\/\S+/)?.[0] ?? '');
  expect(link.pathname).toBe(`/${page}`);
  return link.searchParams.get('token') ?? '';
}

/** Resolves once nothing waits to be sent to the address any more. */
export const mailsSettled = (stack: Stack, email: string): Promise<unknown> =>
  until(
    async () => {
      const waiting = await stack.database("select id from outbox where email = ? and state = 'pending'", [email]);
      return waiting.length === 0;
    },
    { what: `the last mail to ${email}`, within: 15_000 },
  );

/** The browser's cookie that an answer sets. */
export const browserIn = ({ setCookies }: Reply): string | undefined =>
  setCookies.map((cookie) => /^auth_browser=([^;]*)/.exec(cookie)?.[1]).find((value) => value !== undefined);

/** The cookie of the device that a login sets. */
export const deviceIn = ({ setCookies }: Reply): string | undefined =>
  setCookies.map((cookie) => /^auth_device=([^;]*)/.exec(cookie)?.[1]).find((value) => value !== undefined);

/** Somebody who has confirmed the mail in the browser that registered. */
export async function verified(scenario: Scenario, changes: Partial<Person> = {}): Promise<Registered> {
  const person = await registered(scenario, changes);
  const token = await mailedToken(scenario.stack, person.email, 'verify-email');
  expect((await scenario.call('auth.verifyEmail', { token }, { browser: person.browser })).status).toBe(200);
  return person;
}

/** The session token that an answer sets, or '' where it clears the cookie, or undefined where it does neither. */
export function sessionIn({ setCookies }: Reply): string | undefined {
  return setCookies.map((cookie) => /^auth_session=([^;]*)/.exec(cookie)?.[1]).find((value) => value !== undefined);
}

export async function logIn(call: Call, { email, password }: Person, options?: CallOptions): Promise<string> {
  const reply = await call('auth.login', { email, password }, options);
  expect(reply).toMatchObject({ code: undefined, status: 200 });
  const session = sessionIn(reply);
  expect(session).toMatch(/^[A-Za-z0-9_-]{43}$/);
  return session ?? '';
}

export async function loggedIn(scenario: Scenario, changes: Partial<Person> = {}) {
  const person = await verified(scenario, changes);
  return { ...person, session: await logIn(scenario.call, person) };
}

/** An administrator in a session in which a credential was given just now. */
export async function administrator(scenario: Scenario) {
  const admin = await loggedIn(scenario);
  await scenario.stack.database("update users set role = 'admin' where id = ?", [admin.id]);
  return admin;
}

export const isAlive = async (call: Call, session: string): Promise<boolean> => {
  const { status } = await call('profile.get', undefined, { session });
  expect([200, 401]).toContain(status);
  return status === 200;
};

/** As if the user had last given a credential an hour ago, in every session. */
export const growOld = ({ database }: Stack, userId: string) =>
  database('update sessions set authenticated_at = authenticated_at - ? where user_id = ?', [HOUR_MS, userId]);

/** The kinds of a user's events, oldest first. */
export const kindsOf = async ({ database }: Stack, userId: string): Promise<string[]> =>
  (await database<{ kind: string }>('select kind from activity where user_id = ? order by id', [userId])).map(
    ({ kind }) => kind,
  );

/** The details of a user's events of one kind, oldest first; null where there are none. */
export const eventsOf = async ({ database }: Stack, userId: string, kind: string) => {
  const rows = await database<{ details: string | null }>(
    'select details from activity where user_id = ? and kind = ? order by id',
    [userId, kind],
  );
  return rows.map(({ details }) => details && JSON.parse(details));
};

/** All that a client sees of an answer but its time and its id. */
export function visibleIn({ headers, ...reply }: Reply) {
  const { date, 'x-request-id': id, ...others } = Object.fromEntries(headers);
  expect([date, id]).not.toContain(undefined);
  return { ...reply, headers: others };
}

/** Status, code and text of a refusal at once, and that nobody was logged in by it. */
export function expectRefusal(reply: Reply, status: number, code: string, message?: string | RegExp): void {
  expect(reply).toMatchObject({ status, code, ...(typeof message === 'string' && { message }) });
  if (message instanceof RegExp) expect(reply.message).toMatch(message);
  expect(sessionIn(reply) || undefined).toBeUndefined();
  expect(JSON.stringify(reply.data ?? '')).not.toMatch(/\bat \S+:\d+/);
}
