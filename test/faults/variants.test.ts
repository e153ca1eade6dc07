import { afterAll, beforeAll, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { photograph } from '../contract/uploads/corpus.ts';
import { keyOf, sendImage, startUploading, type Uploading, uploader } from '../contract/uploads/storage.ts';
import { until } from '../rig/until.ts';
import { unlimited } from './load.ts';

/** kill -9 between the objects of an image, while it is stored, while it gets other sizes, and while it is deleted. */

const KILLS = 6;
const AT_ONCE = 4;
const LATER_SIZES = 'post:100,320,500';

interface Listed {
  url: string;
  size: number;
  variants: { url: string; bytes: number; width: number }[];
}

let uploading: Uploading;
beforeAll(async () => {
  uploading = await startUploading('S3', unlimited, 2);
});
afterAll(() => uploading?.stop());

const database = <Row extends object>(sql: string, parameters?: (string | number)[]) =>
  uploading.stack.database<Row>(sql, parameters);

/** As when all leases have ended. */
const passTime = () => database('update uploads set variants_until = 1, expires_at = 1, due_at = 1');

const objectsWithoutRow = async () => {
  // Objects before rows: a row is written before its object.
  const objects = await uploading.objects.keys();
  const rows = await database<{ key: string }>(
    'select object_key `key` from uploads union all select object_key from upload_variants',
  );
  const known = new Set(rows.map(({ key }) => key));
  const orphans = objects.filter((key) => !known.has(key));
  // An object may have been deleted since it was listed, and its row after it.
  const left = new Set(await uploading.objects.keys());
  return orphans.filter((key) => left.has(key));
};

/** Kills the first instance as soon as the storage has changed by some objects, and starts it again. */
async function killAmid(hasBegun: (keys: string[]) => boolean, env = {}, beforeRestart: () => unknown = () => {}) {
  const [service] = uploading.stack.services;
  await until(async () => hasBegun(await uploading.objects.keys()), { every: 5, within: 60_000 });
  await service?.kill();
  expect(await objectsWithoutRow()).toEqual([]);
  await beforeRestart();
  await service?.restart({ env });
}

// checks: F1, 89
test(`${3 * KILLS} kill -9 between the objects of images leave no object without a row, and no image without an object`, async () => {
  const { stack, objects } = uploading;
  const person = await uploader(uploading);
  const call = callerOf('rest', stack.services[1]?.url ?? '');
  const bytes = await photograph(1400, 900);
  const image = { bytes, contentType: 'image/jpeg' };
  const acknowledged: Listed[] = [];
  const send = async (url = stack.url) => {
    const { status, body } = await sendImage({ stack: { url } as never }, person.session, image).catch(() => ({
      status: 0,
      body: undefined,
    }));
    if (status === 200) acknowledged.push(body);
  };
  const list = async (): Promise<Listed[]> =>
    (await call('upload.list', {}, { session: person.session })).data.data.filter(
      ({ state }: { state: string }) => state === 'stored',
    );

  for (let n = 0; n < KILLS; n++) {
    const before = (await objects.keys()).length;
    const sent = Promise.all(Array.from({ length: AT_ONCE }, () => send(stack.services[0]?.url)));
    await killAmid((keys) => keys.length > before + n);
    await sent;
  }
  for (let n = 0; n < 3; n++) await send(stack.services[1]?.url);

  // The other sizes.
  const env = { IMAGE_SIZES: LATER_SIZES };
  await Promise.all(
    stack.services.map(async (service) => {
      await service.stop();
      await service.restart({ env });
    }),
  );
  const madeOf = (keys: string[]) => keys.filter((key) => /_(?:100|500)\.webp$/.test(key)).length;
  const total = 2 * (await list()).length;
  for (let n = 0; n < KILLS && madeOf(await objects.keys()) < total; n++) {
    const before = madeOf(await objects.keys());
    // An instance looks when it starts, and then no sooner than a lease lasts.
    await killAmid((keys) => madeOf(keys) > before || madeOf(keys) === total, env, passTime);
  }
  await killAmid(() => true, env, passTime);
  await until(
    async () => {
      await database("update uploads set expires_at = 1, due_at = 1 where state in ('expected', 'doomed')");
      const left = await database("select 1 from uploads where state = 'expected' or variants_for <> '100,320,500'");
      return left.length === 0;
    },
    { within: 60_000, every: 500 },
  );
  await until(
    async () =>
      (await database('select 1 from uploads where variants_until is not null and variants_until > 1')).length === 0,
  );

  const stored = await list();
  for (const { url } of acknowledged) expect(stored.map((each) => each.url)).toContain(url);
  const listed = stored.flatMap(({ url, variants }) => [url, ...variants.map((each) => each.url)]).map(keyOf);
  await until(async () => String((await objects.keys()).sort()) === String(listed.sort()), {
    what: 'exactly the listed objects',
  });
  for (const { variants } of stored) expect(variants.map(({ width }) => width)).toEqual([100, 320, 500]);
  const used = stored.reduce(
    (sum, { size, variants }) => variants.reduce((all, each) => all + each.bytes, sum + size),
    0,
  );
  expect((await call('upload.usage', undefined, { session: person.session })).data).toMatchObject({
    used,
    files: stored.length,
  });

  // Deletions.
  for (const { url } of stored.slice(0, KILLS)) {
    const before = (await objects.keys()).length;
    const name = keyOf(url).replace('uploads/', '');
    const removed = callerOf('rest', stack.services[0]?.url ?? '')(
      'upload.remove',
      { name },
      { session: person.session },
    ).catch(() => undefined);
    await killAmid((keys) => keys.length < before, env);
    await removed;
  }
  await until(async () => {
    await passTime();
    return (await database("select 1 from uploads where state = 'doomed'")).length === 0;
  });
  const left = (await list()).flatMap(({ url, variants }) => [url, ...variants.map((each) => each.url)]).map(keyOf);
  expect(left.length).toBe(listed.length - 4 * Math.min(KILLS, stored.length));
  await until(async () => String((await objects.keys()).sort()) === String(left.sort()));
  console.log(
    `kills between objects; ${stored.length} images stored, ${acknowledged.length} acknowledged; objects without a row 0`,
  );
});
