import { expect, test } from 'vitest';
import { type Answer, createHeldImages } from '../../../server/uploads/images/held-images.ts';
import type { ReadImage } from '../../../server/uploads/images/image-pipe.ts';
import { emptyPng, flat, jpeg, noise, png } from '../../contract/uploads/corpus.ts';

const WIDTHS = [20, 40];

/** What the conversion process answers, without the process. */
function held() {
  const answers: Answer[] = [];
  const { receive, request } = createHeldImages((answer) => answers.push(answer));
  return {
    async receive(id: number, type: ReadImage['type'], bytes: Buffer) {
      await receive({ id, type, bytes });
      return answers.splice(0);
    },
    async request(...sent: Parameters<typeof request>) {
      await request(...sent);
      return answers.splice(0);
    },
  };
}

const picture = { width: expect.any(Number), height: expect.any(Number), placeholder: expect.any(String) };
const widthsOf = ([answer]: Answer[]) =>
  answer && 'result' in answer && typeof answer.result === 'object' && answer.result.variants.map(({ width }) => width);

test('an image is checked when it arrives, and converted when that is requested', async () => {
  const { receive, request } = held();
  expect(await receive(1, 'image/png', await png(60, 40))).toEqual([{ id: 1, result: false }]);
  const answers = await request({ id: 1, step: 'convert', purpose: 'post', widths: WIDTHS });
  expect(answers).toMatchObject([{ id: 1, result: { ...picture, width: 60, height: 40, bytes: expect.any(Buffer) } }]);
  expect(widthsOf(answers)).toEqual(WIDTHS);
});

test('an avatar is a square', async () => {
  const { receive, request } = held();
  await receive(1, 'image/jpeg', await jpeg(60, 40));
  const answers = await request({ id: 1, step: 'convert', purpose: 'avatar', widths: [] });
  expect(answers).toMatchObject([{ result: { width: 512, height: 512, variants: [] } }]);
});

test('a stored picture is only made smaller', async () => {
  const { receive, request } = held();
  const stored = await flat(60, 40).webp().toBuffer();
  expect(await receive(7, 'image/webp', stored)).toEqual([{ id: 7, result: false }]);
  const answers = await request({ id: 7, step: 'derive', widths: WIDTHS });
  expect(answers).toMatchObject([{ id: 7, result: { ...picture, width: 60, height: 40 } }]);
  expect(widthsOf(answers)).toEqual(WIDTHS);
  expect(answers[0]).not.toHaveProperty('result.bytes');
});

test('images are held apart, each for one request', async () => {
  const { receive, request } = held();
  await receive(1, 'image/png', await png(30, 10));
  await receive(2, 'image/png', await png(50, 10));
  const convert = (id: number) => request({ id, step: 'convert', purpose: 'post', widths: [] });
  expect(await convert(2)).toMatchObject([{ id: 2, result: { width: 50 } }]);
  expect(await convert(1)).toMatchObject([{ id: 1, result: { width: 30 } }]);
  expect([await convert(1), await convert(2), await convert(3)]).toEqual([[], [], []]);
});

test('a closed image is held no longer, and gets no answer', async () => {
  const { receive, request } = held();
  await receive(1, 'image/png', await png());
  expect(await request({ id: 1, step: 'close' })).toEqual([]);
  expect(await request({ id: 1, step: 'convert', purpose: 'post', widths: [] })).toEqual([]);
});

test('an image that is too costly is refused when it arrives, and is not held', async () => {
  const { receive, request } = held();
  const [answer] = await receive(1, 'image/png', emptyPng({ width: 6000, height: 4001, bitDepth: 1 }));
  const message = 'The image has more than 24 million pixels';
  expect(answer).toEqual({
    id: 1,
    failure: {
      code: 'VALIDATION_FAILED',
      message,
      details: { file: { rule: 'too_many_pixels', message } },
      cause: undefined,
    },
  });
  expect(await request({ id: 1, step: 'convert', purpose: 'post', widths: [] })).toEqual([]);
});

const damaged = {
  id: 1,
  failure: { code: 'VALIDATION_FAILED', message: 'The image is damaged', cause: { message: expect.any(String) } },
};
const convert = { id: 1, step: 'convert', purpose: 'post' } as const;

test('an image without a whole header is refused when it arrives, with the cause', async () => {
  const { receive } = held();
  const whole = await png();
  expect(await receive(1, 'image/png', Buffer.from(whole.subarray(0, 60)))).toMatchObject([damaged]);
});

test('an image that cannot be decoded is refused when it is converted', async () => {
  const { receive, request } = held();
  const whole = await noise();
  await receive(1, 'image/png', Buffer.from(whole.subarray(0, whole.length / 2)));
  const answers = await request({ ...convert, widths: [] });
  expect(answers).toMatchObject([damaged]);
  expect(answers[0]).not.toHaveProperty('failure.retryAfter');
});

test('if the machine is at fault, the image may be sent again', async () => {
  const { receive, request } = held();
  await receive(1, 'image/png', await png());
  const widths = Object.assign([20], {
    filter() {
      throw new Error('out of memory');
    },
  });
  expect(await request({ ...convert, widths })).toMatchObject([
    { id: 1, failure: { code: 'SERVICE_UNAVAILABLE', retryAfter: 5 } },
  ]);
});
