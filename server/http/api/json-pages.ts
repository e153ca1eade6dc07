import { ServiceError } from '../../errors.ts';
import { isPages, type Pages } from '../../lib/pages.ts';

/** The maximum number of rows in a response that is not streamed. */
const MAX_COLLECTED = 10_000;

/** The JSON text of an object with values that are streams of rows. Reads one page at a time while the text is sent. */
export async function* jsonOf(output: object): AsyncGenerator<string> {
  let lead = '{';
  for (const [name, value] of Object.entries(output)) {
    yield `${lead}${JSON.stringify(name)}:`;
    if (isPages(value)) yield* arrayOf(value);
    else yield JSON.stringify(value);
    lead = ',';
  }
  yield lead === '{' ? '{}\n' : '}\n';
}

async function* arrayOf(pages: Pages): AsyncGenerator<string> {
  let lead = '[';
  for await (const page of pages) {
    yield lead + page.map((row) => JSON.stringify(row)).join(',');
    lead = ',';
  }
  yield lead === '[' ? '[]' : ']';
}

/** The same object with its rows in arrays. Rejects with PAYLOAD_TOO_LARGE above MAX_COLLECTED rows. */
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
      if (count > MAX_COLLECTED) throw tooLarge();
      rows.push(...page);
    }
    whole[name] = rows;
  }
  return whole;
}

const tooLarge = () =>
  new ServiceError('PAYLOAD_TOO_LARGE', {
    message: 'Too large for one response. Use the REST endpoint, which streams',
  });
