/*
 * `AbortSignal.any` and `AbortSignal.timeout` are missing in Safari before 17.4 and in React Native before 0.87, where
 * signals have no `throwIfAborted` either, and may have no reason.
 */

/** A controller that is aborted with `signal` too, until `release` is called. */
export function following(signal: AbortSignal | null | undefined): { controller: AbortController; release(): void } {
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  if (signal?.aborted) abort();
  else signal?.addEventListener('abort', abort);
  return { controller, release: () => signal?.removeEventListener('abort', abort) };
}

/** Aborts the work with `signal`, and after `ms`: then it rejects with an error that has the name TimeoutError. */
export function within<T>(
  { ms, signal }: { ms: number; signal?: AbortSignal | null | undefined },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { controller, release } = following(signal);
  let late: Error | undefined;
  const timer = setTimeout(() => {
    late = Object.assign(new Error(`${ms} ms`), { name: 'TimeoutError' });
    controller.abort(late);
  }, ms);
  return work(controller.signal)
    .catch((error: unknown) => {
      throw late ?? error;
    })
    .finally(() => {
      clearTimeout(timer);
      release();
    });
}
