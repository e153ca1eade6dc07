import { createCounts } from '../../lib/rate-cap.ts';
import { type MailKind, mailKinds } from './kinds.ts';

const WITHIN_MS = 60_000;
/** Separate turns per sender and minute. Further mails share the last turn. */
const TURNS = 10;
const MAX_SENDERS = 100_000;

/** All turns. An index finds the due mails of each. */
export const mailTurns: readonly number[] = Array.from({ length: 2 * TURNS }, (_, turn) => turn);

/**
 * The order of mails: links and warnings before notices, then by the number of mails of the same sender, counted per
 * process. So no mail waits for a sender of many. `sender`: the acting administrator or user, or the requested inbox.
 */
export const createMailTurns = (now?: () => number) => {
  const countOf = createCounts({ withinMs: WITHIN_MS, mostKeys: MAX_SENDERS, ...(now && { now }) });
  return (kind: MailKind, sender: string): number => {
    const isNotice = mailKinds[kind].isNotice === true;
    const count = countOf(`${isNotice} ${sender}`) ?? 1;
    return (isNotice ? TURNS : 0) + Math.min(count, TURNS) - 1;
  };
};

export type MailTurns = ReturnType<typeof createMailTurns>;
