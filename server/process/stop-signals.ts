/** New requests are accepted this long after SIGTERM, until load balancers route them elsewhere. */
const LINGER_MS = 1000;
const REPEATED_SIGNAL_MS = 500;

interface Actions {
  stop(options: { signal: NodeJS.Signals; lingerMs: number }): Promise<void>;
  stopAtOnce(): void;
}

/** Stops gracefully at the first SIGTERM or SIGINT, and immediately at the second. */
export function onStopSignal({ stop, stopAtOnce }: Actions): void {
  let firstAt: number | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    if (firstAt === undefined) {
      firstAt = Date.now();
      // At SIGINT a user waits at a terminal, and no load balancer sends requests.
      void stop({ signal, lingerMs: signal === 'SIGTERM' ? LINGER_MS : 0 });
      // A terminal and npm may both forward the same keystroke.
    } else if (Date.now() - firstAt > REPEATED_SIGNAL_MS) stopAtOnce();
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
}
