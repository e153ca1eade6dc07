import type { Page } from 'playwright-core';

/** Records each text that a page paints, and how far its content has jumped. For `addInitScript`. */
export const recordPaints = `
  window.painted = [];
  window.jumped = 0;
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) window.jumped += value;
  }).observe({ type: 'layout-shift', buffered: true });
  const look = () => {
    const text = document.body?.innerText.trim().replace(/\\s+/g, ' ');
    if (text && text !== window.painted.at(-1)) window.painted.push(text);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);`;

/** Everything that the page has painted since it was loaded. */
export const paintsOf = (page: Page): Promise<{ painted: string[]; jumped: number }> =>
  page.evaluate('({ painted: window.painted, jumped: window.jumped })');
