import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

/** Calls that no source of the service, its pages and its client may have. */

const root = join(import.meta.dirname, '../..');
const filesIn = (...folders: string[]) =>
  folders.flatMap((folder) =>
    globSync(`${folder}/**/*.{ts,tsx,mjs,html}`, { cwd: root, exclude: ['**/node_modules/**', '**/dist/**'] }),
  );
/** Without comments. */
const textOf = (file: string) =>
  readFileSync(join(root, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, '');
const linesWith = (pattern: RegExp, files: string[]) =>
  files.flatMap((file) =>
    textOf(file)
      .split('\n')
      .filter((line) => pattern.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  );

const service = filesIn('server', 'routers', 'entities');
const browser = filesIn('client/pages', 'client/src', 'server/http/web');

test('there are sources to look at', () => {
  expect(service.length).toBeGreaterThan(300);
  expect(browser.length).toBeGreaterThan(100);
});

test('no text is run as code; vm runs one constant', () => {
  const dynamic =
    /\beval\b|\bnew Function\b|\bFunction\(|\brunIn\w+\(|\bnew Script\(|\bset(?:Timeout|Interval)\(\s*['"`]/;
  expect(linesWith(dynamic, [...service, ...browser])).toEqual([
    expect.stringMatching(/^server\/lib\/release-memory\.ts: .*runInNewContext\('gc'\)/),
  ]);
});

describe('the pages', () => {
  test('write text as text, never as markup', () => {
    const markup =
      /innerHTML|outerHTML|insertAdjacentHTML|setHTMLUnsafe|document\.write|createContextualFragment|parseFromString|srcdoc/i;
    expect(linesWith(markup, browser)).toEqual([]);
  });

  test('need no plugin and no frame', () => {
    expect(linesWith(/<(?:object|embed|applet|iframe|frame)(?: |$)/, browser)).toEqual([]);
  });

  test('store drafts only, in the storage of the tab, and no secret among them', () => {
    const storing = /\b(?:local|session)Storage\b|\bindexedDB\b|\bcaches\.|\bcookieStore\b|document\.cookie/;
    const files = new Set(linesWith(storing, browser).map((line) => line.split(':', 1)[0]));
    expect([...files].sort()).toEqual(['client/pages/language/language-cookie.ts', 'client/pages/session/draft.ts']);
    expect(linesWith(/localStorage/, browser)).toEqual([]);
    const kept = linesWith(/\bdraft: \{|\bkeepDraft\(/, browser);
    expect(kept.length).toBeGreaterThan(10);
    expect(
      kept.filter((line) => /password|token|secret|\bcode\b|session\b/i.test(line.split(': ').slice(1).join())),
    ).toEqual([]);
  });
});
