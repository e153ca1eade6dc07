import { endedSessions } from '../rig/observe/history.ts';
import type { Evidence, Kind } from './evidence.ts';

/**
 * Faults planted into the evidence of a run, or of a test: what the record would be if the service had made them. Each
 * names what it falsifies; `falsify` resolves to undefined if the evidence has no place for it.
 */
export interface Plant {
  name: string;
  kind: Kind;
  falsify(evidence: Evidence): Evidence | undefined;
}

const isDone = ({ status = 0 }: { status?: number | undefined }) => status >= 200 && status < 300;

/** The evidence with other values in place; undefined if one has no place. */
const changed = (evidence: Evidence, change: Partial<Evidence> | undefined) => change && { ...evidence, ...change };

const inOutcome = ({ outcome }: Evidence, change: Partial<Evidence['outcome']>) => ({
  outcome: { ...outcome, ...change },
});

export const plants: Plant[] = [
  {
    name: 'an acknowledged registration is rolled back',
    kind: 'lost',
    falsify: (evidence) => {
      const { outcome, history } = evidence;
      const registered = history.find((one) => one.action === 'register' && isDone(one))?.user;
      return registered === undefined
        ? undefined
        : changed(evidence, inOutcome(evidence, { users: outcome.users.filter(({ email }) => email !== registered) }));
    },
  },
  {
    name: 'an acknowledged change of a profile is overwritten by an older one',
    kind: 'lost',
    falsify: (evidence) => {
      const { users } = evidence.outcome;
      const place = users.findIndex(({ value }) => value !== '');
      const stale = users.map((user, i) => (i === place ? { ...user, value: 'stale' } : user));
      return place < 0 ? undefined : changed(evidence, inOutcome(evidence, { users: stale }));
    },
  },
  {
    name: 'a grant of an application is lost',
    kind: 'lost',
    falsify: (evidence) => {
      const { uses } = evidence;
      const place = uses.findIndex(
        (use) =>
          use.action === 'introspect' &&
          use.accepted &&
          !uses.some(({ of, action }) => of === use.of && action === 'end'),
      );
      const refused = uses.map((use, i) => (i === place ? { ...use, accepted: false } : use));
      return place < 0 ? undefined : changed(evidence, { uses: refused });
    },
  },
  {
    name: 'a change is done twice',
    kind: 'doubled',
    falsify: (evidence) => {
      const { events } = evidence;
      const last = events.at(-1)?.number ?? 0;
      const known = new Set(evidence.userIds.values());
      const one = events.find(({ type, data }) => type === 'user.updated' && known.has(data.userId));
      return one && changed(evidence, { events: [...events, { ...one, id: 'another', number: last + 1 }] });
    },
  },
  {
    name: 'an ended session still answers',
    kind: 'survived',
    falsify: (evidence) => {
      const { history, outcome } = evidence;
      const [ended] = endedSessions(history);
      const value = outcome.users.find(({ email }) => email === ended?.user)?.value;
      const start = Math.max(...history.map(({ end }) => end)) + 1;
      const read = { action: 'read', start, end: start + 1, status: 200, value } as const;
      return (
        ended && changed(evidence, { history: [...history, { ...read, user: ended.user, session: ended.session }] })
      );
    },
  },
  {
    name: 'an access key works after it was revoked',
    kind: 'survived',
    falsify: (evidence) => {
      const { uses } = evidence;
      const end = uses.find(({ action, of, accepted }) => action === 'end' && of.startsWith('key') && accepted);
      return (
        end && changed(evidence, { uses: [...uses, { ...end, action: 'key', start: end.end + 1, end: end.end + 2 }] })
      );
    },
  },
  {
    name: 'a reset token works twice',
    kind: 'spentTwice',
    falsify: (evidence) => {
      const { history } = evidence;
      const reset = history.find((entry) => entry.action === 'reset' && isDone(entry));
      return reset && changed(evidence, { history: [...history, reset] });
    },
  },
  {
    name: 'a code of an application works twice',
    kind: 'spentTwice',
    falsify: (evidence) => {
      const { uses } = evidence;
      const redeemed = uses.find(({ action, accepted }) => action === 'redeem' && accepted);
      return redeemed && changed(evidence, { uses: [...uses, { ...redeemed }] });
    },
  },
  {
    name: 'a used refresh token works again',
    kind: 'spentTwice',
    falsify: (evidence) => {
      const { uses } = evidence;
      const used = uses.find(({ action, accepted }) => action === 'refresh' && accepted);
      const later = 60_000;
      return (
        used && changed(evidence, { uses: [...uses, { ...used, start: used.start + later, end: used.end + later }] })
      );
    },
  },
  {
    name: 'an event does not reach a webhook',
    kind: 'webhooks',
    falsify: (evidence) =>
      withDeliveries(evidence, (received) => {
        const number = received[0]?.event.number;
        return received.filter(({ event }) => event.number !== number);
      }),
  },
  {
    name: 'two events of a user reach a webhook in the wrong order',
    kind: 'webhooks',
    falsify: (evidence) =>
      withDeliveries(evidence, (received) => {
        const { userId } = received.find(
          ({ event }, i) =>
            received.findIndex((other) => other.event.data.userId === event.data.userId) < i &&
            received[0]?.event.number !== event.number,
        )?.event.data ?? { userId: undefined };
        const own = received.filter(({ event }) => event.data.userId === userId);
        const last = own.at(-1);
        return last && [last, ...received.filter(({ event }) => event.number !== last.event.number)];
      }),
  },
  {
    name: 'an acknowledged upload is not in the storage',
    kind: 'uploads',
    falsify: (evidence) => {
      const { history, outcome } = evidence;
      const stored = history.find((entry) => entry.action === 'upload' && isDone(entry))?.value;
      const objects = outcome.objects.filter((key) => key !== stored);
      return stored === undefined ? undefined : changed(evidence, inOutcome(evidence, { objects }));
    },
  },
  {
    name: 'a promised mail does not arrive',
    kind: 'mails',
    falsify: (evidence) => {
      const { mails } = evidence.outcome;
      const lost = mails.find(({ subject }) => subject.startsWith('Reset'))?.messageId;
      const others = mails.filter(({ messageId }) => messageId !== lost);
      return lost === undefined ? undefined : changed(evidence, inOutcome(evidence, { mails: others }));
    },
  },
  {
    name: 'an instance answers 500',
    kind: 'answers',
    falsify: (evidence) => {
      const [first, ...others] = evidence.history;
      return first && changed(evidence, { history: [{ ...first, status: 500 }, ...others] });
    },
  },
];

function withDeliveries(
  evidence: Evidence,
  change: (
    received: Evidence['receivers'][number]['received'],
  ) => Evidence['receivers'][number]['received'] | undefined,
) {
  const [first, ...others] = evidence.receivers;
  const received = first && change(first.received);
  return received && changed(evidence, { receivers: [{ ...first, received }, ...others] });
}
