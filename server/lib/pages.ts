/** Rows that are read page by page while they are sent. */
export type Pages<Row = unknown> = AsyncIterable<Row[]>;

export const isPages = (value: unknown): value is Pages =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
