import type { Page } from 'playwright-core';
import type { Language } from '../../server/shared/texts/languages.ts';
import { formsOf, partOf, readTexts } from '../../server/texts/index.ts';

/** The width of the narrowest phones (WCAG 2.2, 1.4.10). */
export const phone = { width: 320, height: 640 };

const texts = readTexts(undefined);
const parts = [...new Set(Object.keys(texts.en).map(partOf))];
const unwritten = new RegExp(`\\{\\w+\\}|</?\\w+>|\\b(?:${parts.join('|')})\\.\\w+\\.[\\w.]+`);

const wordsOf = (form: string): string[] => form.split(/<\/?\w+>|\{\w+\}/).map((words) => words.trim());

/** The words of one language that no other has: of its texts without placeholders and elements. */
const wordsOnlyIn = (language: Language, other: Language): Set<string> => {
  const inOther = new Set(Object.values(texts[other]).flatMap(formsOf).flatMap(wordsOf));
  const own = Object.values(texts[language]).flatMap(formsOf).flatMap(wordsOf);
  return new Set(own.filter((words) => /\p{L}{2}/u.test(words) && !inOther.has(words)));
};

/** All visible or spoken texts, one per line. */
const linesOf = (page: Page): Promise<string[]> =>
  page.evaluate(`(() => {
    const lines = [document.title];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) lines.push(walker.currentNode.data);
    for (const name of ['aria-label', 'alt', 'title', 'placeholder']) {
      for (const element of document.body.querySelectorAll('[' + name + ']')) lines.push(element.getAttribute(name));
    }
    return lines.map((line) => line.trim()).filter(Boolean);
  })()`);

/** Overflowing elements: the page, a label, or a word that breaks across lines. Addresses may break. */
const tooWide = (page: Page): Promise<string[]> =>
  page.evaluate(`(() => {
    const found = document.documentElement.scrollWidth > innerWidth ? ['the page is too wide'] : [];
    for (const label of document.querySelectorAll('button, .button, h1, h2, h3, label, select')) {
      if (!label.closest('.unseen') && label.scrollWidth > label.clientWidth + 1) found.push('cut: ' + label.textContent);
    }
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (node.parentElement.closest('.unseen, select')) continue;
      for (const { 0: word, index } of node.data.matchAll(/[\\p{L}’]{2,}/gu)) {
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        if (range.getClientRects().length > 1 && !node.data.includes('@')) found.push('broken: ' + word);
      }
    }
    return found;
  })()`);

/** What a page in a language must not show: placeholders, keys, English texts, and on a phone words that overflow. */
export async function faultsIn(page: Page, language: Language): Promise<string[]> {
  const lines = await linesOf(page);
  const english = language === 'en' ? new Set() : wordsOnlyIn('en', language);
  return [
    ...((await page.getAttribute('html', 'lang')) === language ? [] : ['another language in <html lang>']),
    ...lines.filter((line) => unwritten.test(line)).map((line) => `not written: ${line}`),
    ...lines.filter((line) => english.has(line)).map((line) => `in English: ${line}`),
    ...(await tooWide(page)),
  ];
}
