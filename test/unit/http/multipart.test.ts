import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readForm } from '../../../server/http/api/multipart.ts';
import { answerFailures } from '../../../server/http/failures.ts';
import { MAX_IMAGE_BYTES } from '../../../server/shared/image-limits.ts';

/** What a form contains, and which forms are refused. form-limits.test.ts has the limits of time and memory. */
const log = Object.fromEntries(['debug', 'info', 'warn', 'error', 'fatal'].map((level) => [level, () => undefined]));
const app = new Koa().use(answerFailures(log as never)).use(async (ctx) => {
  const form = await readForm(ctx);
  ctx.body = await Promise.all(
    [...form].map(async ([name, value]) =>
      typeof value === 'string'
        ? [name, value]
        : [name, value.name, value.type, value.size, (await new Response(value.stream()).bytes()).length],
    ),
  );
});
let server: Server;
let url = '';
beforeAll(async () => {
  server = createServer(app.callback()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

const TYPE = 'multipart/form-data; boundary=b';

/** The parts of a form as the server of the test answers them, or an error. */
type Answer = (string | number)[][] & { message?: string; details?: { body: { rule: string; message: string } } };

/** The answer to a body, and the broken rule. */
async function send(body: string | Buffer, type = TYPE) {
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': type }, body });
  const answer = (await response.json()) as Answer;
  return { status: response.status, answer, rule: answer.details?.body.rule };
}

const part = (disposition: string, content: string, headers = '') =>
  `--b\r\nContent-Disposition: form-data${disposition}\r\n${headers}\r\n${content}\r\n`;
const file = (name: string, content = 'bytes') =>
  part(`; name="${name}"; filename="a.png"`, content, 'Content-Type: image/png\r\n');
const field = (name: string, value: string) => part(`; name="${name}"`, value);
const form = (...parts: string[]) => `${parts.join('')}--b--\r\n`;

test('a form has its fields, and a file with its name, type and content', async () => {
  expect(await send(form(field('type', 'avatar'), file('file'), field('visibility', 'private')))).toMatchObject({
    status: 200,
    answer: expect.arrayContaining([
      ['type', 'avatar'],
      ['visibility', 'private'],
      ['file', 'a.png', 'image/png', 5, 5],
    ]),
  });
});

test('an empty file is a file', async () => {
  expect((await send(form(file('file', '')))).answer).toEqual([['file', 'a.png', 'image/png', 0, 0]]);
});

test('the name of a file is as it was sent', async () => {
  const { answer } = await send(form(part('; name="file"; filename="../a/b.png"', 'x')));
  expect(answer[0]?.[1]).toBe('../a/b.png');
});

describe('a form is refused', () => {
  const content = 'x'.repeat(1024);
  test.each<[string, string, string]>([
    ['with two files', form(file('file'), file('other')), 'too_many_parts'],
    ['with five fields', form(...[1, 2, 3, 4, 5].map((i) => field(`f${i}`, 'x'))), 'too_many_parts'],
    ['with six parts', form(file('file'), ...[1, 2, 3, 4, 5].map((i) => field(`f${i}`, 'x'))), 'too_many_parts'],
    ['with a field twice', form(field('type', 'a'), field('type', 'b')), 'malformed'],
    ['with a long field', form(field('type', `${content}x`)), 'malformed'],
    ['with a part without a name', form(part('', 'x')), 'malformed'],
    ['with a file without a name', form(part('; filename="a.png"', 'x')), 'malformed'],
    ['with a file part without a file name', form(field('file', 'x')), 'missing_filename'],
    ['without its end', file('file').slice(0, -5), 'malformed'],
  ])('%s', async (_, body, rule) => {
    expect(await send(body)).toMatchObject({ status: 400, rule });
  });

  test('without a boundary, or of another type', async () => {
    expect(await send(form(file('file')), 'multipart/form-data')).toMatchObject({ status: 400, rule: 'malformed' });
    expect(await send('{}', 'application/json')).toMatchObject({
      status: 400,
      rule: 'content_type',
      answer: { details: { body: { message: 'Must be multipart/form-data' } } },
    });
  });

  test('with a file above the largest image, or a larger body', async () => {
    const tooLarge = { status: 400, rule: 'too_large' };
    expect(await send(form(file('file', 'x'.repeat(MAX_IMAGE_BYTES + 1))))).toMatchObject(tooLarge);
    const padded = form(file('file', 'x'.repeat(MAX_IMAGE_BYTES)), field('pad', 'x'.repeat(70_000)));
    expect(await send(padded)).toMatchObject(tooLarge);
  });
});

test('the bounds themselves are allowed', async () => {
  const fields = ['a', 'b', 'c', 'd'].map((name) => field(name, 'x'.repeat(1024)));
  const { status, answer } = await send(form(...fields, file('file', 'x'.repeat(MAX_IMAGE_BYTES))));
  expect([status, answer.length]).toEqual([200, 5]);
  expect(answer.at(-1)?.at(-1)).toBe(MAX_IMAGE_BYTES);
});

test('a long name of a field is cut in the message', async () => {
  const name = 'n'.repeat(150);
  const { answer } = await send(form(field(name, 'a'), field(name, 'b')));
  expect(answer.message).toBe(`The part ${'n'.repeat(100)} is too long or sent twice`);
});
