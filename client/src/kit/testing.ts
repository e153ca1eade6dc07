import type { LoginInput } from '../api.ts';
import { createClient } from '../client.ts';
import { cookieJar } from '../cookie-jar.ts';
import { isServiceError } from '../errors.ts';

/** For tests of a front end against a service in development (`npm start`), with its embedded mailbox. */

/** A mail of the development mailbox. */
export interface Mail {
  id: string;
  to: string;
  from: string;
  subject: string;
  text: string;
  html: string;
  /** ISO 8601. */
  at: string;
}

export interface MailQuery {
  to: string;
  /** A part of the subject. */
  subject?: string | undefined;
  /** Milliseconds to wait; default 10000. */
  within?: number | undefined;
}

export interface TestUser extends LoginInput {
  id: string;
  name: string;
}

/** The part of a Playwright Page that is needed. */
export interface TestPage {
  readonly request: {
    post(url: string, options: { data: object }): Promise<{ ok(): boolean; status(): number; text(): Promise<string> }>;
  };
}

const POLL_MS = 50;

/** A suite of tests soon reaches a limit that is made for one person. */
const raise = (variable: string) => `; start the service of your tests with ${variable}=10000/900`;

/** The mails to an address, newest first. */
export async function mailsTo(url: string, address: string): Promise<Mail[]> {
  const response = await fetch(`${url}/dev/mail?${new URLSearchParams({ to: address })}`, {
    headers: { accept: 'application/json' },
  });
  if (!response.ok) throw new Error(`The service at ${url} has no development mailbox (HTTP ${response.status})`);
  return (await response.json()) as Mail[];
}

/** The newest mail, as soon as there is one. */
export async function waitForMail(url: string, { to, subject = '', within = 10_000 }: MailQuery): Promise<Mail> {
  const end = performance.now() + within;
  while (performance.now() < end) {
    const mail = (await mailsTo(url, to)).find((found) => found.subject.includes(subject));
    if (mail) return mail;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error(`No mail “${subject}” to ${to} within ${within} ms`);
}

/** The first link in a mail, such as that of a verification. */
export const linkIn = ({ text }: Pick<Mail, 'text'>): string => /https?:\/\/\S+/.exec(text)?.[0] ?? '';

/** Creates a user who has opened the mailed link. What is not given is chosen. */
export async function newUser(
  url: string,
  {
    name = 'Ada Lovelace',
    email = `ada-${crypto.randomUUID()}@example.com`,
    password = `Analytical-${crypto.randomUUID()}`,
  }: Partial<LoginInput & { name: string }> = {},
): Promise<TestUser> {
  const client = createClient({ url, fetch: cookieJar().fetch });
  const { user } = await client.auth.register.mutate({ name, email, password }).catch((error: unknown) => {
    if (!isServiceError(error, 'RATE_LIMITED')) throw error;
    throw new Error(`The registration was refused: ${error.message}${raise('LIMIT_REGISTER')}`, { cause: error });
  });
  const link = new URL(linkIn(await waitForMail(url, { to: email, subject: 'Verify your email' })));
  await client.auth.verifyEmail.mutate({ token: link.searchParams.get('token') ?? '' });
  return { id: user.id, name, email, password };
}

/** Logs the browser of a Playwright page in, without opening the log-in page. */
export async function loginAs(page: TestPage, url: string, { email, password }: LoginInput): Promise<void> {
  const response = await page.request.post(`${url}/auth/login`, { data: { email, password } });
  if (response.ok()) return;
  const hint = response.status() === 429 ? raise('LIMIT_LOGIN') : '';
  throw new Error(`The login was refused (HTTP ${response.status()}): ${await response.text()}${hint}`);
}
