import { pagePaths } from '../../../server/shared/page-paths.ts';
import { refusalIn } from '../api.ts';
import { endOfLogin } from './way-back.ts';

/** Logs in and goes on, or to `next`. If a second factor is required, goes to the second step with the accepted methods. */
export async function enter(logIn: () => Promise<unknown>, next?: string): Promise<void> {
  try {
    await logIn();
  } catch (error) {
    const { code, details } = refusalIn(error);
    if (code !== 'SECOND_FACTOR_REQUIRED') throw error;
    location.assign(`${pagePaths.secondFactor}?${new URLSearchParams({ methods: details['methods'] ?? '' })}`);
    return;
  }
  location.assign(next ?? endOfLogin());
}
