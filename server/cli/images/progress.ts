/** A terminal, a file or a pipe. */
export interface Output {
  isTTY?: boolean;
  columns?: number;
  write(text: string): void;
}

const SHOW_EVERY_MS = 1000;
/** A file or a pipe gets fewer lines than a terminal sees changes. */
const LINE_EVERY_MS = 10_000;
const MAX_BAR = 40;

/** The progress of a number of images: a bar in one line on a terminal, else lines. */
export function createProgress(output: Output, first: number) {
  const everyMs = output.isTTY ? SHOW_EVERY_MS : LINE_EVERY_MS;
  let total = first;
  let shownAt = 0;

  const text = (left: number) => {
    // Others may have been uploaded since.
    total = Math.max(total, left);
    return `${total - left} of ${total} images`;
  };

  const bar = (left: number) => {
    const words = text(left);
    const length = Math.max(0, Math.min(MAX_BAR, (output.columns ?? 80) - words.length - 4));
    const filled = total === 0 ? length : Math.floor((length * (total - left)) / total);
    return `[${'#'.repeat(filled)}${'-'.repeat(length - filled)}] ${words}`;
  };

  const show = (left: number) => {
    shownAt = performance.now();
    output.write(output.isTTY ? `\r\x1b[K${bar(left)}` : `${text(left)}\n`);
  };

  show(first);
  return {
    /** True if the last line is old enough: to count the images costs a query. */
    isDue: () => performance.now() - shownAt >= everyMs,

    show(left: number): void {
      if (performance.now() - shownAt >= everyMs) show(left);
    },

    /** A line of its own. */
    note(line: string): void {
      output.write(output.isTTY ? `\r\x1b[K${line}\n` : `${line}\n`);
    },

    end(left: number): void {
      show(left);
      if (output.isTTY) output.write('\n');
    },
  };
}
