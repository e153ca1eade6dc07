import { pagePaths } from '../../server/page-paths.ts';
import { refusalIn } from './api.ts';

/** Logs in, and goes to the dashboard, or where else `next` is; or to the second step of the login, with what can be given there. */
export async function enter(logIn: () => Promise<unknown>, next: string = pagePaths.dashboard): Promise<void> {
  try {
    await logIn();
  } catch (error) {
    const { code, details } = refusalIn(error);
    if (code !== 'SECOND_FACTOR_REQUIRED') throw error;
    location.assign(`${pagePaths.secondFactor}?${new URLSearchParams({ methods: details['methods'] ?? '' })}`);
    return;
  }
  location.assign(next);
}
