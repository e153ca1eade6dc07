import { type Answered, deliveryViolations, type StoredEvent } from '../rig/observe/deliveries.ts';
import { eventViolations, type ReadEvent } from '../rig/observe/events.ts';
import { type Entry, findingsIn, type Outcome } from '../rig/observe/history.ts';
import { tokenFindings, type Use } from '../rig/observe/tokens.ts';

/** Everything that was acknowledged, and what is there in the end. */
export interface Evidence {
  history: Entry[];
  outcome: Outcome;
  uses: Use[];
  /** The stream as a reader got it, and the ids of its users by email. */
  events: ReadEvent[];
  userIds: ReadonlyMap<string, string>;
  receivers: { received: Answered[]; secret: string }[];
}

/** What must not happen, as rows of the report. */
export const kinds = {
  lost: 'acknowledged acts that are lost',
  doubled: 'acts done twice, or without a call',
  survived: 'sessions, grants and keys that worked after their acknowledged end',
  spentTwice: 'single-use tokens spent twice',
  webhooks: 'webhook events lost, unsigned, or out of order for a user',
  uploads: 'acknowledged uploads that are missing',
  mails: 'mails lost, doubled without a crash, or unasked',
  answers: 'responses of the service with status 500, 502 or 504',
};
export type Kind = keyof typeof kinds;
export type Found = Record<Kind, string[]>;

export function check({ history, outcome, uses, events, userIds, receivers }: Evidence): Found {
  const { unasked, ...ofHistory } = findingsIn(history.map(asUnknown), outcome);
  const ofTokens = tokenFindings(uses);
  const ofEvents = eventViolations(history, events, userIds);
  const isLoss = (text: string) => text.startsWith('lost');
  const stored: StoredEvent[] = events.map(({ id, number, data }) => ({ id, number, userId: data.userId }));
  return {
    ...ofHistory,
    lost: [...ofHistory.lost, ...ofTokens.lost, ...ofEvents.filter(isLoss)],
    doubled: [...unasked, ...ofEvents.filter((text) => !isLoss(text))],
    survived: [...ofHistory.survived, ...ofTokens.survived],
    spentTwice: [...ofHistory.spentTwice, ...ofTokens.spentTwice],
    webhooks: receivers.flatMap(({ received, secret }) => deliveryViolations(stored, received, secret)),
  };
}

/** After a 503 the call may still have been executed. */
export const asUnknown = (entry: Entry): Entry => (entry.status === 503 ? { ...entry, status: undefined } : entry);

export const countOf = (found: Found): number => Object.values(found).flat().length;
