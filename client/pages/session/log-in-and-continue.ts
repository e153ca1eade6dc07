import { pagePaths } from '../../../server/shared/page-paths.ts';
import { refusalIn } from '../api.ts';
import { afterLogin } from './after-login.ts';
import { leaving } from './leaving.ts';
import { endOfLogin } from './way-back.ts';

interface LoggedIn {
  user: { name: string; email: string };
}

/** Logs in, then redirects: to the second step if required, else to `next`, by default where the login began. */
export async function logInAndContinue(logIn: () => Promise<LoggedIn>, next?: string): Promise<void> {
  try {
    const { user } = await logIn();
    await afterLogin(user);
  } catch (error) {
    const { code, details } = refusalIn(error);
    if (code !== 'SECOND_FACTOR_REQUIRED') throw error;
    location.assign(`${pagePaths.secondFactor}?${new URLSearchParams({ methods: details['methods'] ?? '' })}`);
    return leaving();
  }
  location.assign(next ?? endOfLogin());
  return leaving();
}
