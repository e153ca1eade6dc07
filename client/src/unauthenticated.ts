/**
 * Called with the procedure when a call begins. What it returns is called if the service answers UNAUTHENTICATED
 * or OTHER_USER.
 */
export type Watcher = (procedure: string) => () => void;

/** Who watches the calls of a client, such as a session store. Not an option: a store may get its client from elsewhere. */
export const watchersOf = new WeakMap<object, Set<Watcher>>();
