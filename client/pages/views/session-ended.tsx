import { pagePaths } from '../../../server/page-paths.ts';
import type { Refusal } from '../api.ts';
import type { Problem } from '../form/use-form.ts';
import { markup } from '../texts.ts';
import { rememberPage } from '../way-back.ts';

/** For forms of logged-in users: a session that ended meanwhile loses nothing that was typed. */
export const sessionEnded = ({ code }: Refusal): Problem<never> | undefined =>
  code === 'UNAUTHENTICATED'
    ? {
        message: markup('common.sessionEnded', {
          link: (label) => (
            <a href={pagePaths.logIn} onClick={() => rememberPage()}>
              {label}
            </a>
          ),
        }),
      }
    : undefined;
