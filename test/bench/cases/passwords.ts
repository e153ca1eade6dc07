import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import type { SmtpSink } from '../../rig/servers/smtp.ts';
import type { Case } from '../case.ts';
import { type Extent, figures, inTurn, ratio } from '../compare.ts';
import type { Ask } from '../load.ts';
import { PASSWORD } from '../people.ts';
import type { Person } from '../servers.ts';

/** Multiples of the connections: otherwise the last hashes of a round run alone. */
const extent = (quick: boolean): Extent =>
  quick ? { warmUp: 1, rounds: 3, amount: 96 } : { warmUp: 1, rounds: 7, amount: 256 };

/** Each from its own address, and in a known browser unless `isKnown` is false. */
export const logInAs = (people: Person[], n: number, { isKnown = true } = {}): Ask => {
  const { email, device } = people[n % people.length] as Person;
  return {
    method: 'POST',
    path: '/auth/login',
    headers: { 'X-Forwarded-For': clientAddress(), ...(isKnown && { Cookie: device }) },
    body: { email, password: PASSWORD },
    isRight(text) {
      const { success, user } = JSON.parse(text);
      return success === true && user.email === email && Object.keys(user).join() === 'id,email,name,provider';
    },
  };
};

export const login: Case = {
  name: 'login',
  async run({ servers, quick }) {
    const { service, nodeHttp, betterAuth, people, peerPeople } = await servers();
    const rounds = await inTurn(
      {
        ours: { ...service, ask: (n) => logInAs(people, n) },
        unknown: { ...service, ask: (n) => logInAs(people, n, { isKnown: false }) },
        byHand: { ...nodeHttp, ask: (n) => logInAs(people, n) },
        peer: {
          ...betterAuth,
          ask: (n) => {
            const { email } = peerPeople[n % peerPeople.length] as Person;
            return {
              method: 'POST',
              path: '/api/auth/sign-in/email',
              headers: { Origin: betterAuth.url },
              body: { email, password: PASSWORD },
              isRight: (text) => JSON.parse(text).user.email === email,
            };
          },
        },
      },
      extent(quick),
    );
    return [
      {
        what: 'POST /auth/login (ratios of the rate)',
        ours: figures(rounds.ours),
        others: { 'node:http by hand': figures(rounds.byHand), 'better-auth, sign-in/email': figures(rounds.peer) },
        toLimit: ratio('perSecond', rounds.ours, rounds.byHand, { atLeast: 0.9 }),
        toPeer: ratio('perSecond', rounds.ours, rounds.peer, { atLeast: 1.2 }),
      },
      {
        what: 'the same without a device cookie: programs, first logins',
        ours: figures(rounds.unknown),
        toLimit: ratio('perSecond', rounds.unknown, rounds.byHand),
        toPeer: ratio('perSecond', rounds.unknown, rounds.peer, { atLeast: 1 }),
      },
    ];
  },
};

/** Until the mail server has the last mail of the round. */
export const register: Case = {
  name: 'register',
  async run({ servers, quick }) {
    const { service, nodeHttp, smtp } = await servers();
    let registered = 0;
    const ask = (): Ask => {
      registered++;
      const email = freshEmail();
      return {
        method: 'POST',
        path: '/auth/register',
        headers: { 'X-Forwarded-For': clientAddress() },
        body: { name: 'Ada Lovelace', email, password: PASSWORD },
        status: 201,
        isRight(text) {
          const { success, user } = JSON.parse(text);
          return success === true && user.email === email && Object.keys(user).join() === 'id,email,name';
        },
      };
    };
    const before = acceptedBy(smtp);
    const settled = () => smtp.waitForAttempts({ outcome: 'accepted', count: before + registered, within: 60_000 });
    const rounds = await inTurn(
      { ours: { ...service, ask, settled }, byHand: { ...nodeHttp, ask, settled } },
      extent(quick),
    );
    return [
      {
        what: 'POST /auth/register, mail delivered (ratios of the rate)',
        ours: figures(rounds.ours),
        others: { 'node:http by hand': figures(rounds.byHand) },
        toLimit: ratio('perSecond', rounds.ours, rounds.byHand, { atLeast: 0.9 }),
      },
    ];
  },
};

const acceptedBy = (smtp: SmtpSink) => smtp.attempts().filter(({ outcome }) => outcome === 'accepted').length;
