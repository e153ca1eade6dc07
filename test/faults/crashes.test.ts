import { afterAll, beforeAll, expect, test } from 'vitest';
import { startUploading, type Uploading } from '../contract/uploads/storage.ts';
import { violations } from '../rig/observe/history.ts';
import { outcomeOf, startLoad, summary, unlimited } from './load.ts';

const CYCLES = 20;

let uploading: Uploading;
beforeAll(async () => {
  uploading = await startUploading('S3', unlimited, 2);
});
afterAll(() => uploading?.stop());

// checks: F1, F2
test(`${CYCLES} kill -9 of one of two instances under load lose or repeat no acknowledged change`, async () => {
  const { services, database } = uploading.stack;
  const load = startLoad(uploading);
  const crashes: number[] = [];
  const starts: number[] = [];
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    const service = services[cycle % services.length];
    const answered = load.history.length;
    // After a number of calls, not a time, because a slow machine does less in a second.
    await expect.poll(() => load.history.length, { timeout: 30_000 }).toBeGreaterThan(answered + 60);
    await service?.kill();
    crashes.push(performance.now());
    await service?.restart();
    starts.push(performance.now() - (crashes.at(-1) ?? 0));
  }
  await load.finish();
  const outcome = await outcomeOf(uploading, { crashes });
  expect(violations(load.history, outcome)).toEqual([]);
  // Rows are read before objects: an object may be deleted after it was listed, and its row after it.
  expect(outcome.objects.filter((key) => !outcome.uploads.includes(key))).toEqual([]);
  // Stored when the process was killed, before its answer: the job deletes them.
  const expected = await database<{ key: string }>("select object_key `key` from uploads where state = 'expected'");
  const unanswered = expected.filter(({ key }) => outcome.objects.includes(key));
  const messages = new Set(outcome.mails.map(({ messageId }) => messageId)).size;
  console.log(
    `F1: ${CYCLES} kills; ${summary(load.history)}; mails ${outcome.mails.length}, of them twice ${outcome.mails.length - messages}; ` +
      `ready again after at most ${Math.round(Math.max(...starts))} ms; objects without a row 0, to be deleted ${unanswered.length}`,
  );
});
