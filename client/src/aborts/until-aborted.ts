/** Why a signal was aborted; in engines without reasons an AbortError. */
export const reasonOf = (signal: AbortSignal | null | undefined): unknown =>
  signal?.reason ?? Object.assign(new Error('Aborted'), { name: 'AbortError' });

/** `signal.throwIfAborted`, which some engines lack: see `deadline.ts`. */
export function throwIfAborted(signal: AbortSignal | null | undefined): void {
  if (signal?.aborted) throw reasonOf(signal);
}

/** Rejects with the signal's reason once it is aborted, whatever error `work` rejects with then. */
export async function untilAborted<T>(
  signal: AbortSignal | undefined,
  work: (call: { signal?: AbortSignal }) => Promise<T>,
): Promise<T> {
  throwIfAborted(signal);
  try {
    return await work(signal ? { signal } : {});
  } catch (error) {
    throwIfAborted(signal);
    throw error;
  }
}
