/** A page in the order of the ids, of rows of which one more was asked for. */
export function pageById<Row extends { id: string }>(rows: Row[], limit: number): { page: Row[]; nextCursor?: string } {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return { page, ...(rows.length > limit && last && { nextCursor: last.id }) };
}
