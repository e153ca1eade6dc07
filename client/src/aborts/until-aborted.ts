/** Rejects with the signal's reason once it is aborted, whatever error `work` rejects with then. */
export async function untilAborted<T>(
  signal: AbortSignal | undefined,
  work: (call: { signal?: AbortSignal }) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  try {
    return await work(signal ? { signal } : {});
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}
