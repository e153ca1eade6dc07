import { strictEqual } from 'node:assert';
import type { Case, Result } from '../case.ts';
import { call } from '../client.ts';
import { type Extent, figures, inTurn, ratio } from '../compare.ts';
import type { Ask } from '../load.ts';
import type { Person } from '../servers.ts';

const extent = (quick: boolean): Extent => (quick ? { rounds: 5, amount: 3000 } : { rounds: 5, amount: 5000 });

/** Requests as each user in turn; the answer must equal that user's first one. */
export async function readAs(people: Person[], url: string, path: string): Promise<(n: number) => Ask> {
  const asks = await Promise.all(
    people.map(async ({ email, cookie }): Promise<Ask> => {
      const headers = { Cookie: cookie };
      const { body: right } = await call(url + path, { headers });
      if (!right.includes(email)) throw new Error(`${url}${path} does not answer ${email}: ${right}`);
      return { path, headers, isRight: (body) => body === right };
    }),
  );
  return (n) => asks[n % asks.length] as Ask;
}

const BATCH = 2;
const batchPath = `/trpc/${Array(BATCH).fill('profile.get').join(',')}?batch=1&input=%7B%7D`;

/** The request behind every page: session from the cookie, one Redis lookup, one row, as JSON. */
export const profile: Case = {
  name: 'profile',
  async run({ servers, quick }) {
    const { service, koa, betterAuth, people, peerPeople } = await servers();
    const path = '/api/profile';
    const rest = await readAs(people, service.url, path);
    const byHand = await readAs(people, koa.url, path);
    for (const { cookie: Cookie } of people) {
      const [ours, bare] = await Promise.all(
        [service, koa].map(({ url }) => call(url + path, { headers: { Cookie } })),
      );
      strictEqual(`${bare?.body}\n`, ours?.body);
    }
    const rounds = await inTurn(
      {
        rest: { ...service, ask: rest },
        koa: { ...koa, ask: byHand },
        single: { ...service, ask: await readAs(people, service.url, '/trpc/profile.get') },
        batch: { ...service, ask: await readAs(people, service.url, batchPath), calls: BATCH },
        peer: { ...betterAuth, ask: await readAs(peerPeople, betterAuth.url, '/api/auth/get-session') },
      },
      extent(quick),
    );
    const line = (what: string, ours: 'rest' | 'single' | 'batch', atMost: number): Result => ({
      what,
      ours: figures(rounds[ours]),
      toLimit: ratio('cpu', rounds[ours], rounds.koa, { atMost }),
      toPeer: ratio('cpu', rounds.peer, rounds[ours], { atLeast: 5 }),
    });
    return [
      {
        ...line('GET /api/profile', 'rest', 0.75),
        others: { 'Koa by hand': figures(rounds.koa), 'better-auth, get-session': figures(rounds.peer) },
      },
      line('the same over /trpc', 'single', 1.25),
      line(`the same over /trpc, ${BATCH} in a batch, each`, 'batch', 1.25),
    ];
  },
};

/** One request at a time on one connection: nothing is shared with other requests, such as a read of several rows. */
export const serial: Case = {
  name: 'serial',
  async run({ servers, quick }) {
    const { service, koa, people } = await servers();
    const path = '/api/profile';
    const rounds = await inTurn(
      {
        ours: { ...service, ask: await readAs(people, service.url, path) },
        koa: { ...koa, ask: await readAs(people, koa.url, path) },
      },
      { rounds: quick ? 3 : 9, amount: quick ? 1000 : 3000, connections: 1 },
    );
    const what = 'GET /api/profile, one at a time';
    const others = { 'Koa by hand': figures(rounds.koa) };
    return [
      {
        what: `${what} (ratio of the CPU)`,
        ours: figures(rounds.ours),
        others,
        toLimit: ratio('cpu', rounds.ours, rounds.koa, { atMost: 1.1 }),
      },
      {
        what: `${what} (ratio of the latency)`,
        ours: {},
        toLimit: ratio('p50', rounds.ours, rounds.koa, { atMost: 1.1 }),
      },
    ];
  },
};

/** A page of the public list. */
export const list: Case = {
  name: 'list',
  async run({ servers, quick }) {
    const { service, koa } = await servers();
    const path = '/api/users?limit=100';
    const [ours, bare] = await Promise.all([service, koa].map(({ url }) => call(url + path)));
    strictEqual(`${bare?.body}\n`, ours?.body);
    const ask = (): Ask => ({ path, isRight: (body) => body === ours?.body });
    const rounds = await inTurn({ ours: { ...service, ask }, koa: { ...koa, ask } }, extent(quick));
    return [
      {
        what: 'GET /api/users?limit=100',
        ours: figures(rounds.ours),
        others: { 'Koa by hand': figures(rounds.koa) },
        toLimit: ratio('cpu', rounds.ours, rounds.koa, { atMost: 0.9 }),
      },
    ];
  },
};
