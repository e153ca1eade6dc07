import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isMutationRun } from '../../rig/mutation-run.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import { type Stack, type StackName, type StackOptions, startStack } from '../../rig/stack.ts';
import { until } from '../../rig/until.ts';
import { type Call, type CallOptions, callerOf, type Reply, type Surface } from './callers.ts';

export const PASSWORD = 'Analytical-Engine-1843';
const HOUR_MS = 60 * 60_000;

const { CI, TEST_FORMS, TEST_STACK, TEST_SURFACE } = process.env;

/** The stacks for scenarios: both, or that of TEST_STACK. */
export const stackNames = (['embedded', 'real'] as const).filter((name) =>
  isMutationRun ? name === 'embedded' : TEST_STACK === undefined || TEST_STACK === name,
);

/** Both stacks and both surfaces: with TEST_FORMS=all, and in CI for the documented interface. */
const hasAllForms = ({ isDocumented }: { isDocumented: boolean }) =>
  TEST_FORMS === 'all' || (CI !== undefined && isDocumented);

/** The surfaces for a stack: that of TEST_SURFACE, or both, or one each, so that every stack and surface is covered. */
export const surfacesOn = (stack: StackName, forms = { isDocumented: false }): Surface[] =>
  (['rest', 'trpc'] as const).filter((surface) => {
    if (isMutationRun) return surface === 'rest';
    if (TEST_SURFACE !== undefined) return TEST_SURFACE === surface;
    return hasAllForms(forms) || (stack === 'real') === (surface === 'rest');
  });

export interface Scenario {
  stack: Stack;
  call: Call;
}

/** The stacks for the scenarios of the current file: both for all forms; otherwise one, so that each has half of the files. */
function stacksOfFile(forms: { isDocumented: boolean }): readonly StackName[] {
  if (hasAllForms(forms) || stackNames.length === 1) return stackNames;
  const { testPath = '' } = expect.getState();
  const first = createHash('sha256').update(basename(testPath)).digest()[0] ?? 0;
  return [stackNames[first % stackNames.length] as StackName];
}

/** Runs the same tests on embedded and on real parts. */
export function onBothStacks(define: (stack: () => Stack, name: StackName) => void, options?: StackOptions): void {
  for (const name of stackNames) onStack(name, define, options);
}

/** For tests that measure a process: each stack is one of its own. */
export const onBothProcesses = (define: (stack: () => Stack, name: StackName) => void): void =>
  onBothStacks(define, { inProcess: false });

/** A suite of its own: its hooks concern its tests only. */
export function onStack(
  name: StackName,
  define: (stack: () => Stack, name: StackName) => void,
  options?: StackOptions,
): void {
  if (!stackNames.includes(name)) {
    test.skip(`on ${name} parts`);
    return;
  }
  describe(`on ${name} parts`, () => {
    let stack: Stack | undefined;
    beforeAll(async () => {
      stack = await startStack(name, { inProcess: true, ...options });
    });
    afterAll(() => stack?.stop());
    define(() => {
      if (!stack) throw new Error('the stack did not start');
      return stack;
    }, name);
  });
}

type Define = (scenario: () => Scenario) => void;
type DefineForSurface = (scenario: () => Scenario, surface: Surface) => void;

/** Runs the same tests in one form: on one stack, through one surface, whichever; with TEST_FORMS=all in all four. */
export function everywhere(define: Define, options?: StackOptions): void {
  inForms(define, options, { isDocumented: false });
}

/** Of scenarios of docs/interface.md, which CI runs in all four forms. */
export const documented = { isDocumented: true };

/** As `everywhere`, but in CI in all four forms: for docs/interface.md, and for what depends on the surface. */
export const inEveryForm = (define: DefineForSurface, options?: StackOptions): void =>
  inForms(define, options, documented);

function inForms(define: DefineForSurface, options: StackOptions | undefined, forms: { isDocumented: boolean }): void {
  for (const name of stacksOfFile(forms)) onStack(name, (stack) => overSurfaces(stack, name, define, forms), options);
}

/** Runs the same tests through the surfaces of a stack that other tests share. */
export function overSurfaces(
  stack: () => Stack,
  name: StackName,
  define: DefineForSurface,
  forms?: { isDocumented: boolean },
): void {
  describe.each(surfacesOn(name, forms))('over %s', (surface) => {
    define(() => ({ stack: stack(), call: callerOf(surface, stack().url) }), surface);
  });
}

export const overEverySurface = (stack: () => Stack, name: StackName, define: DefineForSurface): void =>
  overSurfaces(stack, name, define, documented);

export interface Person {
  email: string;
  password: string;
  name: string;
  /** If there are terms. */
  acceptTerms?: boolean;
}

interface Registered extends Person {
  id: string;
  /** The cookie of the browser that registered. */
  browser: string | undefined;
}

interface Verified extends Registered {
  /** The cookie of the device that registered. */
  device: string | undefined;
}

/** A registered, unverified user. */
export async function registered({ call }: Scenario, changes: Partial<Person> = {}): Promise<Registered> {
  const person = { email: freshEmail(), password: PASSWORD, name: 'Ada Lovelace', ...changes };
  const reply = await call('auth.register', person);
  expect(reply).toMatchObject({ code: undefined, data: { success: true } });
  return { ...person, id: reply.data.user.id, browser: browserIn(reply) };
}

/** The pages of mailed links, with the words in the subjects of their mails. */
const mailedPages = {
  'verify-email': 'Verify your email',
  'reset-password': 'Reset your password',
  'confirm-email': 'Confirm your new email',
  'undo-email-change': 'The email of your account',
  'not-me': 'New login',
  register: 'You are invited',
};

/** The token in the `count`th mail to an address with a link to a page. */
export async function mailedToken(stack: Stack, to: string, page: keyof typeof mailedPages, count = 1) {
  const { text } = await stack.waitForMail({ to, subject: mailedPages[page], count });
  const link = new URL(text.match(/https?:\/\/\S+/)?.[0] ?? '');
  expect(link.pathname).toBe(`/${page}`);
  return link.searchParams.get('token') ?? '';
}

/** Resolves once no mail to the address is pending. */
export const mailsSettled = (stack: Stack, email: string): Promise<unknown> =>
  until(
    async () => {
      const waiting = await stack.database("select id from outbox where email = ? and state = 'pending'", [email]);
      return waiting.length === 0;
    },
    { what: `the last mail to ${email}` },
  );

/** The browser cookie that an answer sets. */
export const browserIn = ({ setCookies }: Reply): string | undefined =>
  setCookies.map((cookie) => /^auth_browser=([^;]*)/.exec(cookie)?.[1]).find((value) => value !== undefined);

/** The device cookie that a login sets. */
export const deviceIn = ({ setCookies }: Reply): string | undefined =>
  setCookies.map((cookie) => /^auth_device=([^;]*)/.exec(cookie)?.[1]).find((value) => value !== undefined);

/** A browser with a session; always the same browser. */
export const inBrowser = (session: string) => ({ session, browser: 'B'.repeat(43) });

/** A user who has confirmed the mail in the browser of the registration. */
export async function verified(scenario: Scenario, changes: Partial<Person> = {}): Promise<Verified> {
  const person = await registered(scenario, changes);
  const token = await mailedToken(scenario.stack, person.email, 'verify-email');
  const reply = await scenario.call('auth.verifyEmail', { token }, { browser: person.browser });
  expect(reply.status).toBe(200);
  return { ...person, device: deviceIn(reply) };
}

/** The session token that an answer sets, '' if it clears the cookie, undefined otherwise. */
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

/** A user logged in in the browser of the registration. */
export async function loggedIn(scenario: Scenario, changes: Partial<Person> = {}) {
  const person = await verified(scenario, changes);
  return { ...person, session: await logIn(scenario.call, person, { device: person.device }) };
}

/** An administrator with a recent session. */
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

/** As if the user had last given a credential an hour ago, in all sessions. */
export const growOld = ({ database }: Stack, userId: string) =>
  database('update sessions set authenticated_at = authenticated_at - ? where user_id = ?', [HOUR_MS, userId]);

/** The kinds of a user's events, oldest first. */
export const kindsOf = async ({ database }: Stack, userId: string): Promise<string[]> =>
  (await database<{ kind: string }>('select kind from activity where user_id = ? order by id', [userId])).map(
    ({ kind }) => kind,
  );

/** The details of a user's events of one kind, oldest first; null without any. */
export const eventsOf = async ({ database }: Stack, userId: string, kind: string) => {
  const rows = await database<{ details: string | null }>(
    'select details from activity where user_id = ? and kind = ? order by id',
    [userId, kind],
  );
  return rows.map(({ details }) => details && JSON.parse(details));
};

/** Everything that a client sees of an answer, except time and id. */
export function visibleIn({ headers, ...reply }: Reply) {
  const { date, 'x-request-id': id, ...others } = Object.fromEntries(headers);
  expect([date, id]).not.toContain(undefined);
  return { ...reply, headers: others };
}

/** Asserts status, code and message of a refusal, and that it opened no session. */
export function expectRefusal(reply: Reply, status: number, code: string, message?: string | RegExp): void {
  expect(reply).toMatchObject({ status, code, ...(typeof message === 'string' && { message }) });
  if (message instanceof RegExp) expect(reply.message).toMatch(message);
  expect(sessionIn(reply) || undefined).toBeUndefined();
  expect(JSON.stringify(reply.data ?? '')).not.toMatch(/\bat \S+:\d+/);
}
