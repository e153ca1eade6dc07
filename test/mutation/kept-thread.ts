/*
 * One thread for all mutants of this process. Vitest starts one per run, which takes 2.4 s of CPU, mostly to load
 * modules; here a mutant takes 0.4 s. Only test modules are reloaded, so mutants in code that runs while another module
 * loads would never be active: hence `ignoreStatic`.
 */

import { type PoolWorker, ThreadsPoolWorker } from 'vitest/node';

type Options = ConstructorParameters<typeof ThreadsPoolWorker>[0];
type Listener = (message: unknown) => void;
type Request = Parameters<PoolWorker['send']>[0];

let thread: ThreadsPoolWorker | undefined;
let isStarted = false;

class KeptThread implements PoolWorker {
  readonly name = 'kept-thread';
  readonly #options: Options;
  readonly #listeners: [event: string, listener: Listener][] = [];
  #config: unknown;

  constructor(options: Options) {
    this.#options = options;
  }

  async start(): Promise<void> {
    if (thread) return;
    thread = new ThreadsPoolWorker(this.#options);
    await thread.start();
  }

  async stop(): Promise<void> {
    for (const [event, listener] of this.#listeners.splice(0)) thread?.off(event, listener);
  }

  on(event: string, listener: Listener): void {
    this.#listeners.push([event, listener]);
    thread?.on(event, listener);
  }

  off(event: string, listener: Listener): void {
    thread?.off(event, listener);
  }

  /** The first start reaches the thread; later runs get what has changed: the configuration. */
  send(request: Request): void {
    if (request.type === 'start' && isStarted) {
      this.#config = request.context.config;
      this.#answer('started');
    } else if (request.type === 'stop') this.#answer('stopped');
    else if (request.type === 'run' && this.#config) {
      thread?.send({ ...request, context: { ...request.context, config: this.#config } } as Request);
    } else {
      isStarted = true;
      thread?.send(request);
    }
  }

  deserialize(data: unknown): unknown {
    return data;
  }

  #answer(type: 'started' | 'stopped'): void {
    for (const [event, listener] of [...this.#listeners]) {
      if (event === 'message') queueMicrotask(() => listener({ __vitest_worker_response__: true, type }));
    }
  }
}

export const keptThread = { name: 'kept-thread', createPoolWorker: (options: Options) => new KeptThread(options) };
