/**
 * Runs commands of server/cli one after the other, each as a new process would: it imports the command's file anew, with
 * its arguments, environment and output. Only the modules behind that file are loaded once.
 */
import { Writable } from 'node:stream';
import type { Ended, Run } from './command.ts';

/** Thrown in place of `process.exit`. */
class Exit extends Error {}

const exit = process.exit;
process.once('disconnect', () => exit());
// A command listens to signals; none comes here.
process.setMaxListeners(0);
process.exit = () => {
  throw new Exit();
};

let runs = 0;

async function run({ name, env, args }: Run): Promise<Ended> {
  const file = new URL(`../../../server/cli/${name}.ts`, import.meta.url);
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    const value = new Writable({
      decodeStrings: false,
      write(chunk, _encoding, done) {
        output[stream] += chunk;
        done();
      },
    });
    Object.defineProperty(process, stream, { value });
  }
  process.env = env;
  process.argv = [process.execPath, file.pathname, ...args];
  process.exitCode = 0;
  file.search = `?run=${runs++}`;
  try {
    await import(file.href);
  } catch (error) {
    if (!(error instanceof Exit)) throw error;
  }
  return { code: Number(process.exitCode), ...output };
}

process.on('message', (request: Run) => {
  void run(request).then((ended) => process.send?.(ended));
});
