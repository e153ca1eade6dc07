import type { Page } from 'playwright-core';

/** What has moved since the page began: the sum of all shifts (Cumulative Layout Shift), and the elements. */
export const shifts = (page: Page): Promise<{ value: number; moved: string[] }> =>
  page.evaluate(`new Promise((resolve) => {
    const found = { value: 0, moved: [] };
    const observer = new PerformanceObserver((list) => {
      for (const { value, sources } of list.getEntries()) {
        found.value += value;
        found.moved.push(...sources.map(({ node }) => node?.outerHTML?.slice(0, 80) ?? '?'));
      }
    });
    observer.observe({ type: 'layout-shift', buffered: true });
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => resolve(found), 0)));
  })`);
