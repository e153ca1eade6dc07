import { pagePaths } from '../../../server/page-paths.ts';
import type { Refusal } from '../api.ts';
import type { Problem } from '../form/use-form.ts';
import { rememberPage } from '../way-back.ts';

/** For forms of logged-in users: a session that ended meanwhile loses nothing that was typed. */
export const sessionEnded = ({ code }: Refusal): Problem<never> | undefined =>
  code === 'UNAUTHENTICATED'
    ? {
        message: (
          <>
            Your session has ended.{' '}
            <a href={pagePaths.logIn} onClick={() => rememberPage()}>
              Log in again
            </a>
            : what you typed is kept.
          </>
        ),
      }
    : undefined;
