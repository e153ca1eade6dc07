import { flushCompileCache } from 'node:module';
import { constants, setPriority } from 'node:os';
import { createHeldImages } from './held-images.ts';
import { PIPE, readImages } from './image-pipe.ts';

// Runs first: all threads that start later inherit it.
setPriority(constants.priority.PRIORITY_LOW);
// The service handles signals to the process group: it completes its requests and then disconnects.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => undefined);
process.on('disconnect', () => {
  flushCompileCache();
  // `process.exit` would wait for conversions that are no longer needed.
  process.kill(process.pid, 'SIGKILL');
});

const images = createHeldImages((answer) => process.send?.(answer));
readImages(PIPE, images.receive);
process.on('message', images.request);
