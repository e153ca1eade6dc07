/**
 * Of the mails of this process to one inbox, one at a time is counted and queued: the limit per inbox locks no row of the
 * database.
 */
export function createInboxTurns() {
  const held = new Map<string, Promise<void>>();

  /** Holds a free inbox until the answer is called; undefined if it is held. */
  const tryHold = (inbox: string): (() => void) | undefined => {
    if (held.has(inbox)) return undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    held.set(inbox, promise);
    return () => {
      held.delete(inbox);
      resolve();
    };
  };

  return {
    tryHold,

    async hold(inbox: string): Promise<() => void> {
      for (;;) {
        const release = tryHold(inbox);
        if (release) return release;
        await held.get(inbox);
      }
    },
  };
}

export type InboxTurns = ReturnType<typeof createInboxTurns>;
