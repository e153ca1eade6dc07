/** More than the longest record. */
const MAX_BYTES = 64 * 1024;

const LF = 0x0a;

/** `number` counts from 1. */
export type Line = { number: number; text: string } | { number: number; problem: string };

/**
 * The lines of a file without their ends (LF or CRLF) and without a byte order mark. Memory does not grow with the file
 * or a line.
 */
export async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<Line> {
  let number = 1;
  let parts: Buffer[] = [];
  let length = 0;

  const complete = (): Line => {
    const line = { number, ...(length > MAX_BYTES ? tooLong : decoded(Buffer.concat(parts))) };
    number += 1;
    parts = [];
    length = 0;
    return line;
  };

  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, from)) {
      const part = chunk.subarray(from, end);
      length += part.length;
      if (length <= MAX_BYTES) parts.push(part);
      yield complete();
      from = end + 1;
    }
    const rest = chunk.subarray(from);
    length += rest.length;
    if (length <= MAX_BYTES && rest.length > 0) parts.push(rest);
    else if (length > MAX_BYTES) parts = [];
  }
  if (length > 0) yield complete();
}

const tooLong = { problem: `is longer than ${MAX_BYTES} bytes` };

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decoded(bytes: Buffer): { text: string } | { problem: string } {
  try {
    return { text: utf8.decode(bytes).replace(/\r$/, '') };
  } catch {
    return { problem: 'is not in UTF-8' };
  }
}
