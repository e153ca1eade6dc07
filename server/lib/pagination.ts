/** Cuts a page from rows fetched with limit + 1; the extra row proves that there is a next page. */
export function pageById<Row extends { id: string }>(rows: Row[], limit: number): { page: Row[]; nextCursor?: string } {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return { page, ...(rows.length > limit && last && { nextCursor: last.id }) };
}
