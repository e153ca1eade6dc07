import { ServiceError } from '../../errors.ts';

/** The most rows that are collected for an answer that is not streamed. */
const MOST_COLLECTED = 10_000;

type Pages = AsyncIterable<unknown[]>;

const isPages = (value: unknown): value is Pages =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value;

/**
 * The JSON text of an object of which some values are rows, in pages that are read while the text is sent: in memory is one
 * page at a time.
 */
export async function* jsonOf(output: object): AsyncGenerator<string> {
  let lead = '{';
  for (const [name, value] of Object.entries(output)) {
    yield `${lead}${JSON.stringify(name)}:`;
    if (isPages(value)) yield* arrayOf(value);
    else yield JSON.stringify(value);
    lead = ',';
  }
  yield lead === '{' ? '{}' : '}';
}

async function* arrayOf(pages: Pages): AsyncGenerator<string> {
  let lead = '[';
  for await (const page of pages) {
    yield lead + page.map((row) => JSON.stringify(row)).join(',');
    lead = ',';
  }
  yield lead === '[' ? '[]' : ']';
}

/** The same object with its rows in arrays. Rejects with PAYLOAD_TOO_LARGE where there are too many for memory. */
export async function collected(output: object): Promise<object> {
  let count = 0;
  const whole: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(output)) {
    if (!isPages(value)) {
      whole[name] = value;
      continue;
    }
    const rows: unknown[] = [];
    for await (const page of value) {
      count += page.length;
      if (count > MOST_COLLECTED) throw tooLarge();
      rows.push(...page);
    }
    whole[name] = rows;
  }
  return whole;
}

const tooLarge = () =>
  new ServiceError('PAYLOAD_TOO_LARGE', { message: 'This is too much for one answer: over REST it is streamed' });
