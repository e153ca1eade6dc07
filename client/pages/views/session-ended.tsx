import { pagePaths } from '../../../server/shared/page-paths.ts';
import type { Refusal } from '../api.ts';
import type { Problem } from '../form/use-form.ts';
import { markup } from '../language/texts.ts';
import { rememberPage } from '../session/way-back.ts';

/** For forms of logged-in users: if the session has ended, the input is kept. */
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
