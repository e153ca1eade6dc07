import { expect, test } from 'vitest';
import { loggedIn } from '../contract/rig/scenario.ts';
import { findings } from './axe.ts';
import { inBrowser } from './browser.ts';

const DAY_MS = 86_400_000;

inBrowser(['embedded'], (scenario) => {
  test('lists the activity by day, newest first, with an icon for each event, and marks refused logins', async () => {
    const { call, stack, visit } = scenario();
    const { id, email, session } = await loggedIn(scenario());
    await call('auth.login', { email, password: 'Wrong-Password-1' });
    const age = (kind: string, days: number) =>
      stack.database('update activity set created_at = created_at - ? where user_id = ? and kind = ?', [
        days * DAY_MS,
        id,
        kind,
      ]);
    await age('verified', 1);
    await age('registered', 40);
    await visit(
      async (page) => {
        await page.goto('/dashboard/activity');
        const days = page.locator('.day');
        await days.first().waitFor();
        const before = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long' }).format(Date.now() - 40 * DAY_MS);
        expect(await days.getByRole('heading', { level: 2 }).allInnerTexts()).toEqual(['Today', 'Yesterday', before]);
        const [today, yesterday, first] = [days.nth(0), days.nth(1), days.nth(2)].map((day) =>
          day.getByRole('listitem'),
        );
        expect(await today?.count()).toBe(2);
        expect(await today?.first().innerText()).toMatch(/^Login refused: .*\n+\d\d:\d\d, from /);
        expect(await today?.locator('.mark.failure .icon').count()).toBe(1);
        expect(await today?.first().locator('.mark.failure').count()).toBe(1);
        expect(await yesterday?.allInnerTexts()).toEqual([expect.stringMatching(/^Email verified\n/)]);
        expect(await first?.allInnerTexts()).toEqual([expect.stringMatching(/^Account created with a password\n/)]);
        expect(await page.locator('.day .icon').count()).toBe(4);
        expect(await findings(page)).toEqual([]);
      },
      { session },
    );
  });
});
