import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import { expect, test } from 'vitest';
import { designPath } from '../../server/shared/page-paths.ts';
import { findings } from './axe.ts';
import { heading, inBrowser } from './browser.ts';

const FAILURE = { light: 'rgb(185, 28, 28)', dark: 'rgb(252, 165, 165)' };

/** The colours of the lines around a control. */
const look = (control: Locator): Promise<string> =>
  control.evaluate((element) => {
    const { borderColor, outlineStyle, outlineColor } = Reflect.get(globalThis, 'getComputedStyle')(element);
    return `${borderColor} ${outlineStyle === 'solid' ? outlineColor : ''}`;
  });

inBrowser(['embedded'], (scenario) => {
  test.each(['light', 'dark'] as const)(
    'shows every control in both schemes, to a reader in %s',
    async (colorScheme) => {
      await scenario().visit(
        async (page) => {
          await page.goto(designPath);
          await heading(page, 'Design');
          const grounds: string[] = [];
          for (const scheme of ['light', 'dark'] as const) {
            const section = page.getByRole('region', { name: `In ${scheme}` });
            for (const kind of ['primary', 'secondary', 'quiet', 'danger'])
              await section.getByRole('button', { name: kind, exact: true }).waitFor();
            await section.getByRole('alert').getByText('Why it was refused.').waitFor();
            await section.getByRole('table').waitFor();
            const text = await section.innerText();
            for (const part of ['on-failure', 'space-16 4rem', 'text-xl 1.5rem', 'One step', 'Uploading 40%'])
              expect(text).toContain(part);
            expect(await section.locator('.skeleton .line').count()).toBeGreaterThan(0);
            for (const label of ['Wrong', 'Wrong choice', 'Not ticked'])
              expect(await look(section.getByLabel(label, { exact: true })), label).toContain(FAILURE[scheme]);
            grounds.push(
              await section.evaluate((element) => Reflect.get(globalThis, 'getComputedStyle')(element).backgroundColor),
            );
          }
          expect(grounds).toEqual(['rgb(247, 247, 248)', 'rgb(17, 17, 20)']);
          expect(await findings(page)).toEqual([]);
          await page.setViewportSize({ width: 320, height: 640 });
          expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
        },
        { colorScheme },
      );
    },
  );
});

inBrowser(
  ['real'],
  (scenario) => {
    test('without the development tools neither the page nor its script is served', async () => {
      const { stack, visit } = scenario();
      const scripts = readdirSync(join(import.meta.dirname, '../../client/pages/dist/design/assets'));
      const script = scripts.find((name) => /^design-.*\.js$/.test(name));
      expect((await fetch(`${stack.url}/assets/${script}`)).status).toBe(404);
      await visit(async (page) => {
        const response = await page.goto(designPath);
        expect(response?.status()).toBe(404);
      });
    });
  },
  { env: { DEV_TOOLS: 'off' } },
);
