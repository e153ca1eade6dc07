import { expect, test } from 'vitest';
import { collected, jsonOf } from '../../../server/http/api/json-pages.ts';

async function* pages(...given: unknown[][]) {
  yield* given;
}
const textOf = async (output: object) => (await Array.fromAsync(jsonOf(output))).join('');

test.each<[string, object, string]>([
  ['nothing', {}, '{}\n'],
  ['plain values', { a: 1, b: { c: null } }, '{"a":1,"b":{"c":null}}\n'],
  ['no page', { rows: pages() }, '{"rows":[]}\n'],
  ['an empty page', { rows: pages([]) }, '{"rows":[]}\n'],
  ['two pages', { rows: pages([1, { a: 'x' }], [3]), 'a"b': 2 }, '{"rows":[1,{"a":"x"},3],"a\\"b":2}\n'],
])('the text of an object with %s is JSON in a line', async (_, output, text) => {
  expect(await textOf(output)).toBe(text);
});

test('pages are read only as their text is sent', async () => {
  const read: number[] = [];
  async function* counted() {
    for (const page of [1, 2]) {
      read.push(page);
      yield [page];
    }
  }
  const text = jsonOf({ rows: counted() });
  for (const sent of ['{"rows":', '[1']) expect((await text.next()).value).toBe(sent);
  expect(read).toEqual([1]);
});

test('collected rows are in the arrays of the same object', async () => {
  expect(await collected({ a: 1, rows: pages([1, 2], [3]), none: pages() })).toEqual({
    a: 1,
    rows: [1, 2, 3],
    none: [],
  });
});

test('at most 10,000 rows are collected, of all arrays together', async () => {
  const most = Array(5000).fill(0);
  expect(await collected({ a: pages(most), b: pages(most) })).toMatchObject({ a: most });
  await expect(collected({ a: pages(most), b: pages(most, [0]) })).rejects.toMatchObject({
    code: 'PAYLOAD_TOO_LARGE',
    message: 'Too large for one response. Use the REST endpoint, which streams',
  });
});
