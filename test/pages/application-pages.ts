import * as client from 'openid-client';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Write } from '../../server/shared/texts/template.ts';
import { deviceParty, relyingParty } from '../contract/rig/relying-party.ts';
import { heading, press, type Scenario } from './browser.ts';

/** A page that applications lead to, in one of its states. */
interface State {
  path: string;
  title(write: Write): string;
  steps?(page: Page, write: Write): Promise<void>;
}

const application = 'Shop';

/** In the order of a visit by a user with this session: the last page lists the access that an earlier one gave. */
export async function applicationPages(scenario: Scenario, user: { id: string; session: string }): Promise<State[]> {
  const party = await relyingParty(scenario);
  const device = await deviceParty(scenario);
  await device.allowed(user, { scope: 'openid profile email offline_access' });
  const request = await party.parameters(client.randomPKCECodeVerifier(), {
    scope: 'openid profile email offline_access',
    prompt: 'consent',
  });
  const form = { title: (write: Write) => write('entry.device.title') };
  const submit = (page: Page, write: Write) => press(page, write('entry.device.continue'));
  const refused = async (page: Page, write: Write) => {
    await submit(page, write);
    await page.getByRole('alert').waitFor();
  };
  const asked = async (page: Page, write: Write) => {
    await submit(page, write);
    await heading(page, write('entry.device.ask.title', { application }));
  };
  const answered = (button: 'allow' | 'deny', outcome: 'allowed' | 'denied') => async (page: Page, write: Write) => {
    await asked(page, write);
    await press(page, write(`entry.authorize.${button}`));
    await heading(page, write(`entry.device.${outcome}.title`));
  };
  const pathOf = async () => {
    const { pathname, search } = new URL((await device.begin()).verification_uri_complete ?? '');
    return pathname + search;
  };
  return [
    { path: '/authorize?id=unknown', title: (write) => write('entry.authorize.expired') },
    {
      path: client.buildAuthorizationUrl(party.config, request).href,
      title: (write) => write('entry.authorize.title', { application }),
    },
    { ...form, path: '/device' },
    { ...form, path: '/device', steps: refused },
    { ...form, path: '/device?user_code=BBBB-BBBB', steps: refused },
    { ...form, path: await pathOf(), steps: asked },
    { ...form, path: await pathOf(), steps: answered('deny', 'denied') },
    { ...form, path: await pathOf(), steps: answered('allow', 'allowed') },
    {
      path: '/dashboard/applications',
      title: (write) => write('dashboard.parts.applications'),
      async steps(page, write) {
        await page.getByRole('button', { name: write('dashboard.applications.end') }).waitFor();
      },
    },
    {
      path: '/dashboard/applications',
      title: (write) => write('dashboard.parts.applications'),
      async steps(page, write) {
        await press(page, write('dashboard.applications.end'));
        await page.getByText(write('dashboard.applications.none')).waitFor();
      },
    },
  ];
}

/** Opens each state, and fails on what `faultsOf` finds there. */
export async function expectClean(
  page: Page,
  states: State[],
  write: Write,
  faultsOf: (page: Page) => Promise<unknown[]>,
): Promise<void> {
  for (const { path, title, steps } of states) {
    await page.goto(path);
    await heading(page, title(write));
    await steps?.(page, write);
    expect(await faultsOf(page), path).toEqual([]);
  }
}
