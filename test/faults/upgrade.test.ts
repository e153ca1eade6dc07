import { afterAll, beforeAll, expect, test } from 'vitest';
import { startUploading, type Uploading } from '../contract/uploads/storage.ts';
import { violations } from '../rig/observe/history.ts';
import { lastRelease, type Release } from '../rig/process/release.ts';
import { root } from '../rig/process/service.ts';
import { until } from '../rig/until.ts';
import { failures, outcomeOf, summary, unlimited } from './load.ts';
import { rollingLoad } from './rolling.ts';

/** Calls that both versions answer, in each state of an upgrade. */
const CALLS = 100;

let release: Release;
let uploading: Uploading;
beforeAll(async () => {
  release = await lastRelease();
  uploading = await startUploading('S3', unlimited, 2, release.tree);
});
afterAll(() => uploading?.stop());

test('an upgrade from the last release and its rollback fail no call under load', async () => {
  const { load, replace } = rollingLoad(uploading, { users: 8 });
  const further = async () => {
    const { length } = load.history;
    await until(() => load.history.length > length + CALLS, { what: `${CALLS} calls` });
    expect(failures(load.history)).toEqual([]);
  };
  await further();
  // And the upgrade again: the previous release leaves mails of unknown kinds to a newer instance.
  for (const tree of [root, release.tree, root]) {
    for (const service of uploading.stack.services) {
      await replace(service, { tree });
      await further();
    }
  }
  await load.finish();
  expect(failures(load.history)).toEqual([]);
  expect(violations(load.history, await outcomeOf(uploading))).toEqual([]);
  console.log(`Upgrade: ${release.name} to this state and back; ${summary(load.history)}; failed 0`);
}, 180_000);
