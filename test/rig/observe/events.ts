import type { Action, Entry } from './history.ts';

/** An event as a reader of the feed got it. */
export interface ReadEvent {
  id: string;
  number: number;
  type: string;
  data: { userId: string };
}

/** The type of event that an acknowledged call causes, once. */
const types: Partial<Record<Action, string>> = {
  register: 'user.created',
  verify: 'user.verified',
  login: 'session.created',
  change: 'user.updated',
  reset: 'user.password_changed',
  logoutAll: 'sessions.ended',
  upload: 'upload.stored',
};

/**
 * What a reader of the stream got that it must not, or did not get: an event that is missing, that nothing caused, that
 * came twice, or in another order than that of its number. `userIds` are by email.
 */
export function eventViolations(
  history: readonly Entry[],
  read: readonly ReadEvent[],
  userIds: ReadonlyMap<string, string>,
): string[] {
  const found: string[] = [];
  const ids = new Set<string>();
  for (const [i, { id, number }] of read.entries()) {
    if (number <= (read[i - 1]?.number ?? 0)) found.push(`out of order: ${number} after ${read[i - 1]?.number}`);
    if (ids.has(id)) found.push(`twice: ${number}`);
    ids.add(id);
  }
  const ofUser = Map.groupBy(read, ({ data }) => data.userId);
  for (const [user, calls] of Map.groupBy(history, (entry) => entry.user)) {
    const events = ofUser.get(userIds.get(user) ?? '') ?? [];
    for (const [action, type] of Object.entries(types)) {
      const ofAction = calls.filter((call) => call.action === action);
      const certain = ofAction.filter(({ status = 0 }) => status >= 200 && status < 300).length;
      // A call that was answered 503, or not at all, may have been executed.
      const possible = certain + ofAction.filter(({ status = 503 }) => status === 503).length;
      const count = events.filter((event) => event.type === type).length;
      if (count < certain) found.push(`lost: ${certain} ${type} of ${user}, ${count} in the stream`);
      if (count > possible) found.push(`too many: ${count} ${type} of ${user}, at most ${possible} calls`);
    }
  }
  return found;
}
