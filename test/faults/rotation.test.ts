import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { loggedIn, mailedToken, onStack, registered } from '../contract/rig/scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { put, startUploading, type Uploading } from '../contract/uploads/storage.ts';
import { Browser } from '../provider/browser.ts';
import { begin } from '../provider/login.ts';
import { loadClient, procedureOf } from '../rig/client/client.ts';
import { violations } from '../rig/observe/history.ts';
import type { Service } from '../rig/process/service.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { until } from '../rig/until.ts';
import { patient } from './in-rounds.ts';
import { failures, outcomeOf, summary, unlimited } from './load.ts';
import { rollingLoad } from './rolling.ts';

const [OLD, NEW] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')];
const entryOf = (token: string) => `billing:${createHash('sha256').update(token).digest('hex')}`;
const tokens = { old: 'billing-token-of-last-year', current: 'billing-token-of-this-year' };

/** Mails of each kind that are pending while their secret is removed. */
const HELD = 5;
/** Failed attempts, and leases by the instance without its secret, delay a mail: on a busy machine by some minutes. */
const LATEST_MS = 150_000;

let uploading: Uploading;
beforeAll(async () => {
  const env = { ...unlimited, APP_SECRET: OLD, SERVICE_TOKENS: entryOf(tokens.old) };
  uploading = await startUploading('S3', env, 2);
});
afterAll(() => uploading?.stop());

test('rotating secrets on two running instances invalidates no link, session or service token', async () => {
  const { stack } = uploading;
  const [first, second] = stack.services as [Service, Service];
  const at = ({ url }: Service) => ({ stack, call: patient(callerOf('rest', url)) });
  const people = (service: Service) => Promise.all(Array.from({ length: HELD }, () => registered(at(service))));
  const refused: string[] = [];
  const verify = async (email: string, service: Service) => {
    await stack.waitForMail({ to: email, subject: 'Verify your email', within: LATEST_MS });
    const reply = await at(service).call('auth.verifyEmail', {
      token: await mailedToken(stack, email, 'verify-email'),
    });
    if (reply.status !== 200) refused.push(`${email}: ${reply.status} ${reply.message}`);
  };
  const { load, serving, replace } = rollingLoad(uploading, { users: 8 });

  let serviceToken = tokens.old;
  let isOver = false;
  let calls = 0;
  const callAsService = async () => {
    const { createServiceClient } = await loadClient();
    while (!isOver) {
      const { url } = serving[calls++ % serving.length] as Service;
      const client = createServiceClient({ url, token: serviceToken });
      await procedureOf(client, 'service.session')
        .mutate({ token: 'none' })
        .catch((error: unknown) => refused.push(`service.session: ${error}`));
      await pause(50);
    }
  };
  const service = callAsService();

  // Opened once the secret of their links is removed.
  const late = await people(first);
  for (const { email } of late) await mailedToken(stack, email, 'verify-email');

  stack.smtp?.behave('refuse-temporarily');
  const ofOld = [...(await people(first)), ...(await people(second))];
  const both = { APP_SECRET: `${NEW},${OLD}`, SERVICE_TOKENS: `${entryOf(tokens.old)},${entryOf(tokens.current)}` };
  await replace(first, { env: both });
  // One instance creates links with a secret that the other does not know.
  const ofBoth = [...(await people(first)), ...(await people(second))];
  stack.smtp?.behave('accept');
  for (const { email } of [...ofOld, ...ofBoth]) await verify(email, second);
  await replace(second, { env: both });

  serviceToken = tokens.current;
  const [{ last = '' } = {}] = await stack.database<{ last: string }>('select max(id) as last from outbox');
  const isSent = async () =>
    (await stack.database("select id from outbox where id <= ? and state = 'pending'", [last])).length === 0;
  await until(isSent, { within: LATEST_MS, what: 'the last mail of the old secret' });
  for (const one of [first, second])
    await replace(one, { env: { APP_SECRET: NEW, SERVICE_TOKENS: entryOf(tokens.current) } });
  for (const { email } of late) await verify(email, first);

  isOver = true;
  await Promise.all([load.finish(), service]);
  const outcome = await outcomeOf(uploading);
  const ofLoad = new Set(load.history.map(({ user }) => user));
  const mails = outcome.mails.filter(({ to: [to = ''] }) => ofLoad.has(to));
  expect(refused).toEqual([]);
  expect(failures(load.history)).toEqual([]);
  expect(violations(load.history, { ...outcome, mails })).toEqual([]);
  console.log(
    `Rotation: 4 restarts; ${summary(load.history)}; links ${late.length + ofOld.length + ofBoth.length}, calls of a service ${calls}: refused 0`,
  );
});

onStack(
  'embedded',
  (embedded) => {
    test('storage URLs and embedded provider logins survive a rotation', async () => {
      const stack = embedded();
      const [service] = stack.services as [Service];
      const call = callerOf('rest', stack.url);
      const { session } = await loggedIn({ stack, call });
      const bytes = await png(40, 30);
      const contentType = 'image/png';
      const presign = async (): Promise<string> => {
        const declared = { filename: 'a.png', contentType, size: bytes.length };
        return (await call('upload.presign', declared, { session })).data.presignedUrl;
      };
      const send = async (address: string) => (await put(address, bytes, { 'content-type': contentType })).status;
      const { browser, request } = await begin(stack, new Browser(), 'idp');
      const page = new URL(await browser.redirectOf(request), request);
      const [used, unused] = [await presign(), await presign()];

      await service.restart({ env: { APP_SECRET: `${NEW},${OLD}` } });
      expect(await send(used)).toBe(200);
      const form = new URLSearchParams({ email: freshEmail(), verified: 'yes', action: 'login' });
      const submitted = { method: 'POST', headers: { origin: stack.appUrl }, body: form };
      const resume = await browser.redirectOf(page, submitted);
      expect(await browser.redirectOf(await browser.redirectOf(resume))).toBe('/dashboard');
      const made = await presign();

      await service.restart({ env: { APP_SECRET: NEW } });
      expect([await send(made), await send(unused)]).toEqual([200, 403]);
    });
  },
  { env: { APP_SECRET: OLD } },
);
