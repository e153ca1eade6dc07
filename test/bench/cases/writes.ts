import type { Case } from '../case.ts';
import { call } from '../client.ts';
import { type Extent, figures, inTurn, ratio } from '../compare.ts';
import type { Ask } from '../load.ts';
import type { Person } from '../servers.ts';

/** Measured: some thousand requests until the CPU per request falls no further. */
const extent = (quick: boolean): Extent =>
  quick ? { warmUp: 4, rounds: 5, amount: 1500 } : { warmUp: 6, rounds: 5, amount: 3000 };

/** Each user in turn. */
const as = (people: Person[], n: number): Record<string, string> => ({
  Cookie: (people[n % people.length] as Person).cookie,
});

let texts = 0;
/** A new value each time, because an unchanged row is not written. */
const newBio = () => `Writes about engine ${++texts}.`;

/** One field of the profile; the picture stays. */
export const update: Case = {
  name: 'update',
  async run({ servers, quick }) {
    const { service, nodeHttp, betterAuth, people, peerPeople } = await servers();
    const change = (n: number): Ask => {
      const bio = newBio();
      const right = JSON.stringify(bio);
      const body = { bio };
      return {
        method: 'PUT',
        path: '/api/profile',
        headers: as(people, n),
        body,
        isRight: (text) => text.includes(right),
      };
    };
    await sameAnswers([service.url, nodeHttp.url], change(0));
    const rounds = await inTurn(
      {
        ours: { ...service, ask: change },
        byHand: { ...nodeHttp, ask: change },
        peer: {
          ...betterAuth,
          ask: (n) => ({
            method: 'POST',
            path: '/api/auth/update-user',
            headers: { ...as(peerPeople, n), Origin: betterAuth.url },
            body: { bio: newBio() },
            isRight: (text) => text === '{"status":true}',
          }),
        },
      },
      extent(quick),
    );
    return [
      {
        what: 'PUT /api/profile',
        ours: figures(rounds.ours),
        others: { 'node:http by hand': figures(rounds.byHand), 'better-auth, update-user': figures(rounds.peer) },
        toLimit: ratio('cpu', rounds.ours, rounds.byHand, { atMost: 1.8 }),
        toPeer: ratio('cpu', rounds.peer, rounds.ours, { atLeast: 8 }),
      },
    ];
  },
};

/** A presigned URL, compared with a profile read by the same service. */
export const presign: Case = {
  name: 'presign',
  async run({ servers, quick }) {
    const { service, people } = await servers();
    const rounds = await inTurn(
      {
        presign: {
          ...service,
          ask: (n) => ({
            method: 'POST',
            path: '/api/upload/presign',
            headers: as(people, n),
            body: { filename: 'photo.png', contentType: 'image/png', size: 1000 },
            isRight: (text) => JSON.parse(text).expiresIn === 300,
          }),
        },
        profile: {
          ...service,
          ask: (n) => ({ path: '/api/profile', headers: as(people, n), isRight: (text) => 'user' in JSON.parse(text) }),
        },
      },
      extent(quick),
    );
    return [
      {
        what: 'POST /api/upload/presign',
        ours: figures(rounds.presign),
        others: { 'GET /api/profile': figures(rounds.profile) },
        toLimit: ratio('cpu', rounds.presign, rounds.profile, { atMost: 3 }),
      },
    ];
  },
};

async function sameAnswers(urls: string[], { method = 'GET', path, headers = {}, body }: Ask): Promise<void> {
  const bodies = new Set<string>();
  for (const url of urls) bodies.add((await call(url + path, { method, headers, body })).body);
  if (bodies.size > 1) throw new Error(`the servers do not answer ${path} alike: ${[...bodies].join('\n')}`);
}
