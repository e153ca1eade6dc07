/**
 * Serializes counting and queueing of this process's mails to one inbox, so the limit per inbox locks no database row.
 */
export function createInboxTurns() {
  const held = new Map<string, Promise<void>>();

  /** Holds a free inbox. Returns its release function, or undefined if the inbox is held. */
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
