import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, expect, test } from 'vitest';
import type { ImageType } from '../../../server/shared/image-limits.ts';
import { toWebp } from '../../../server/uploads/images/conversion.ts';
import { createConverter } from '../../../server/uploads/images/converter.ts';
import { cpuTime } from '../../bench/measure.ts';
import { jpeg, photograph, png } from '../../contract/uploads/corpus.ts';
import { conversionProcesses, endConversionProcesses } from '../../rig/process/conversion-processes.ts';
import { priorities } from '../../rig/process/process-tree.ts';
import { until } from '../../rig/until.ts';

const WIDTHS = [40, 80];

/** The process of a test's only converter. */
function processOf(): number {
  const [pid, ...others] = conversionProcesses();
  if (pid === undefined || others.length > 0) throw new Error('not one conversion process');
  return pid;
}

async function convert({ open }: ReturnType<typeof createConverter>, bytes: Buffer, type: ImageType = 'image/png') {
  const image = await open([bytes], type);
  try {
    return await image.convert('post', WIDTHS);
  } finally {
    image.close();
  }
}

const unavailable = { code: 'SERVICE_UNAVAILABLE', retryAfter: expect.any(Number) };

afterEach(endConversionProcesses);

test('one process converts all images, at the lowest priority', async () => {
  const converter = createConverter();
  const converted = await Promise.all(
    Array.from({ length: 5 }, async () => convert(converter, await jpeg(), 'image/jpeg')),
  );
  for (const { bytes, width, height } of converted) {
    expect([bytes.toString('latin1', 8, 12), width, height]).toEqual(['WEBP', 300, 200]);
  }
  const threads = priorities(processOf());
  expect(threads.get('libuv-worker')).toEqual(new Set([19]));
  expect(threads.get('MainThread') ?? threads.get('node')).toEqual(new Set([19]));
});

test('concurrent images arrive unchanged, in any pieces', async () => {
  const converter = createConverter();
  const images = await Promise.all(
    Array.from({ length: 9 }, (_, n) => photograph(400 + 150 * n, 300, 90).then((bytes) => ({ bytes, piece: 4 ** n }))),
  );
  const converted = await Promise.all(
    images.map(async ({ bytes, piece }) => {
      const amount = Math.ceil(bytes.length / piece);
      const pieces = Array.from({ length: amount }, (_, n) => bytes.subarray(n * piece, (n + 1) * piece));
      const image = await converter.open(pieces, 'image/jpeg');
      return image.convert('post', WIDTHS).finally(image.close);
    }),
  );
  expect(converted).toEqual(await Promise.all(images.map(({ bytes }) => toWebp(bytes, 'post', WIDTHS))));
});

test('an idle process that has converted an image ends', async () => {
  const converter = join(import.meta.dirname, '../../../server/uploads/images/converter.ts');
  const program = `
    const { createConverter } = await import(${JSON.stringify(converter)});
    const image = await createConverter({ idleMs: 600_000 }).open([Buffer.from(process.argv[1], 'base64')], 'image/png');
    console.log((await image.convert('post', [])).width);
    image.close();`;
  const args = ['--input-type=module', '-e', program, (await png()).toString('base64')];
  expect((await promisify(execFile)(process.execPath, args)).stdout).toBe('300\n');
});

test('after it ends, the next image starts another', async () => {
  const converter = createConverter({ idleMs: 1 });
  await convert(converter, await png());
  await until(async () => conversionProcesses().length === 0);
  expect(await convert(converter, await png())).toMatchObject({ width: 300 });
});

test('an open image keeps the process', async () => {
  const converter = createConverter({ idleMs: 1 });
  const open = await converter.open([await png()], 'image/png');
  const pid = processOf();
  await convert(converter, await png());
  expect(await open.convert('post', WIDTHS)).toMatchObject({ width: 300 });
  expect(processOf()).toBe(pid);
  open.close();
});

test('if it is killed, its images fail with 503, and the next starts another', async () => {
  const converter = createConverter();
  const open = await converter.open([await png()], 'image/png');
  const pid = processOf();
  const before = cpuTime(pid);
  const running = convert(converter, await photograph(5000, 4000), 'image/jpeg');
  await until(async () => cpuTime(pid) > before + 100, { every: 1 });
  process.kill(pid, 'SIGKILL');
  await expect(running).rejects.toMatchObject({
    ...unavailable,
    cause: { message: expect.stringMatching(/SIGKILL$/) },
  });
  await expect(open.convert('post', WIDTHS)).rejects.toMatchObject(unavailable);
  open.close();
  expect(await convert(converter, await png())).toMatchObject({ width: 300 });
});

test('an image on its way to it then fails with 503 too', async () => {
  const converter = createConverter();
  await convert(converter, await png());
  const pid = processOf();
  // More than the pipe holds, for a process that does not read.
  process.kill(pid, 'SIGSTOP');
  const sent = [Buffer.alloc(5_000_000), await png()];
  const outcomes = Promise.allSettled(sent.map((bytes) => convert(converter, bytes)));
  process.kill(pid, 'SIGKILL');
  for (const outcome of await outcomes) {
    expect(outcome).toMatchObject({ status: 'rejected', reason: unavailable });
  }
  expect(await convert(converter, await png())).toMatchObject({ width: 300 });
});

test('a process that stops reading is killed in time', async () => {
  const { open } = createConverter({ hangingMs: 1 });
  await expect(open([Buffer.alloc(5_000_000)], 'image/jpeg')).rejects.toMatchObject(unavailable);
  await until(async () => conversionProcesses().length === 0);
});

test('a process that does not answer in time is killed', async () => {
  // No process starts within a millisecond.
  const { open } = createConverter({ hangingMs: 1 });
  await expect(open([await png()], 'image/png')).rejects.toMatchObject({
    ...unavailable,
    cause: { message: expect.stringMatching(/SIGKILL$/) },
  });
});

test('it ignores signals to the process group', async () => {
  const converter = createConverter();
  const open = await converter.open([await png()], 'image/png');
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(processOf(), signal);
  expect(await open.convert('post', WIDTHS)).toMatchObject({ width: 300 });
  open.close();
});

test('a refusal reaches the caller unchanged', async () => {
  const converter = createConverter();
  await expect(convert(converter, (await png()).subarray(0, 60))).rejects.toMatchObject({
    code: 'VALIDATION_FAILED',
    message: 'The image is damaged',
    details: { file: { message: 'The image is damaged', rule: 'damaged' } },
    cause: { message: expect.any(String) },
  });
});
