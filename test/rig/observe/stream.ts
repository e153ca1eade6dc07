/** An event with its place in the stream and the time of its cause, by the database's clock. */
export interface Numbered {
  number: number;
  userId: string;
  at: number;
}

/**
 * Events of one user in another order than their causes. Changes of a user lock the user's row, so their times are in the
 * order of their commits.
 */
export function orderViolations(events: readonly Numbered[]): string[] {
  const latest = new Map<string, Numbered>();
  return events
    .toSorted((a, b) => a.number - b.number)
    .flatMap((event) => {
      const before = latest.get(event.userId);
      latest.set(event.userId, event);
      if (before === undefined || before.at <= event.at) return [];
      return [`swapped in the stream: ${event.number} of ${event.userId} happened before ${before.number}`];
    });
}
