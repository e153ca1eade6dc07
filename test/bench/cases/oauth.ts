import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { calculatePKCECodeChallenge } from 'openid-client';
import type { Case, Result } from '../case.ts';
import { call } from '../client.ts';
import { cpuOfTree, median } from '../measure.ts';
import { addPeople } from '../people.ts';
import { logIn, type Server } from '../servers.ts';

const REDIRECT_URI = 'https://shop.example.com/callback';
const VERIFIER = 'v'.repeat(43);
const SCOPES = ['openid', 'profile', 'email', 'offline_access'];
const AT_ONCE = 8;

const run = promisify(execFile);
const cli = join(import.meta.dirname, '../../../server/cli/application.ts');

/** A server with a client that has a secret. */
interface Contender extends Server {
  paths: Record<'token' | 'userinfo' | 'introspect' | 'jwks', string>;
  credentials: string;
  makeCodes(count: number): Promise<string[]>;
}

interface Tokens {
  access_token: string;
  refresh_token: string;
}

/** The token endpoint and what relying parties call, beside the bare library with its models in memory. */
export const oauth: Case = {
  name: 'oauth',
  isLong: true,
  async run({ parts, quick }) {
    const { service, database } = await parts.startProduction({ LIMIT_AUTHORIZATION_START: '1000000/3600' });
    if (service.pid === undefined) throw new Error('the service does not run');
    await addPeople(database, 3);
    const { cookie } = await logIn(service.url, database, 0);
    const { stdout } = await run(
      process.execPath,
      [
        cli,
        'add',
        'Shop',
        '--kind',
        'web',
        '--redirect',
        REDIRECT_URI,
        '--scopes',
        SCOPES.join(),
        '--trusted',
        '--json',
      ],
      { env: { ...process.env, ...service.env } },
    );
    const { id, secret } = JSON.parse(stdout) as { id: string; secret: string };
    const challenge = await calculatePKCECodeChallenge(VERIFIER);
    const ours: Contender = {
      url: service.url,
      pid: service.pid,
      paths: {
        token: '/oauth/token',
        userinfo: '/oauth/userinfo',
        introspect: '/oauth/introspect',
        jwks: '/oauth/jwks',
      },
      credentials: `${id}:${secret}`,
      makeCodes: (count) => inParts(count, () => codeOf(service.url, { id, challenge, cookie })),
    };
    const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' });
    const library = await parts.startServer(join(import.meta.dirname, '../baselines/oidc-provider.ts'), {
      CHALLENGE: challenge,
      REDIRECT_URI,
      CLIENT_SECRET: secret,
      SIGNING_KEY: JSON.stringify({ ...key, alg: 'ES256', use: 'sig', kid: 'bench' }),
    });
    const bare: Contender = {
      ...library,
      paths: { token: '/token', userinfo: '/me', introspect: '/token/introspection', jwks: '/jwks' },
      credentials: `bench:${secret}`,
      makeCodes: async (count) => JSON.parse((await call(`${library.url}/codes?count=${count}`)).body),
    };
    const amount = quick ? 100 : 400;
    const rounds = quick ? 1 : 3;
    const measured = new Map<string, { ours: number; bare: number }[]>();
    for (let round = -2; round < rounds; round++) {
      const cpu = { ours: await measure(ours, amount), bare: await measure(bare, amount) };
      if (round < 0) continue;
      for (const [what, value] of cpu.ours)
        measured.set(what, [...(measured.get(what) ?? []), { ours: value, bare: cpu.bare.get(what) ?? Number.NaN }]);
    }
    return [...measured].map(
      ([what, values]): Result => ({
        what,
        ours: { cpu: median(values.map((value) => value.ours)) },
        others: { 'bare oidc-provider in memory': { cpu: median(values.map((value) => value.bare)) } },
        toLimit: { value: median(values.map((value) => value.ours / value.bare)), goal: { atMost: 2 }, isStable: true },
      }),
    );
  },
};

/** CPU in ms of each kind of call. */
async function measure(server: Contender, amount: number): Promise<Map<string, number>> {
  const { url, pid, paths, credentials } = server;
  const client = { Authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
  const cpu = new Map<string, number>();
  const timed = async <T>(what: string, count: number, work: (n: number) => Promise<T>): Promise<T[]> => {
    const before = cpuOfTree(pid);
    const done = await inParts(count, work);
    cpu.set(what, (cpuOfTree(pid) - before) / count);
    return done;
  };
  const post = async (path: string, form: Record<string, string>) => {
    const body = Buffer.from(String(new URLSearchParams(form)));
    const headers = { ...client, 'Content-Type': 'application/x-www-form-urlencoded' };
    return JSON.parse((await call(url + path, { headers, body })).body);
  };
  const codes = await server.makeCodes(amount);
  const tokens: Tokens[] = await timed('POST /oauth/token, a code', amount, (n) =>
    post(paths.token, {
      grant_type: 'authorization_code',
      code: codes[n] ?? '',
      redirect_uri: REDIRECT_URI,
      code_verifier: VERIFIER,
    }),
  );
  const next: Tokens[] = await timed('POST /oauth/token, a refresh', amount, (n) =>
    post(paths.token, { grant_type: 'refresh_token', refresh_token: tokens[n]?.refresh_token ?? '' }),
  );
  const token = (n: number) => next[n % next.length]?.access_token ?? '';
  await timed('GET /oauth/userinfo', 2 * amount, async (n) => {
    const { body } = await call(url + paths.userinfo, { headers: { Authorization: `Bearer ${token(n)}` } });
    if (!body.includes('"email_verified":true')) throw new Error(body);
  });
  await timed('POST /oauth/introspect', 2 * amount, async (n) => {
    const { active } = await post(paths.introspect, { token: token(n) });
    if (!active) throw new Error('the token is not active');
  });
  await timed('GET /oauth/jwks', 4 * amount, () => call(url + paths.jwks));
  return cpu;
}

/** A code by the whole flow of a user with a session, for a trusted application. */
async function codeOf(
  url: string,
  { id, challenge, cookie }: { id: string; challenge: string; cookie: string },
): Promise<string> {
  const query = new URLSearchParams({
    client_id: id,
    response_type: 'code',
    redirect_uri: REDIRECT_URI,
    scope: SCOPES.join(' '),
    prompt: 'consent',
    code_challenge: challenge,
    code_challenge_method: 'S256',
  });
  const path = (location: string | undefined) => {
    const { pathname, search } = new URL(location ?? '', url);
    return url + pathname + search;
  };
  const began = await call(`${url}/oauth/authorize?${query}`, { status: 303 });
  const browser = (began.headers['set-cookie'] ?? []).map((line) => line.split(';')[0]).join('; ');
  const request = new URL(began.headers.location ?? '', url).searchParams.get('id');
  const { body } = await call(`${url}/api/authorizations/${request}`, {
    headers: { Cookie: `${cookie}; ${browser}` },
    body: {},
  });
  const back = await call(path(JSON.parse(body).location), { headers: { Cookie: browser }, status: 303 });
  return new URL(back.headers.location ?? '').searchParams.get('code') ?? '';
}

/** A few at once, in the order of their numbers. */
async function inParts<T>(count: number, work: (n: number) => Promise<T>): Promise<T[]> {
  const done: T[] = [];
  let next = 0;
  const worker = async () => {
    for (let n = next++; n < count; n = next++) done[n] = await work(n);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return done;
}
