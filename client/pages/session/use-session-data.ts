import type { ProfileGetOutput } from 'account-client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { pagePaths } from '../../../server/shared/page-paths.ts';
import { readProfile } from '../account-menu/account-menu.tsx';
import { api, headers, type Refusal, refusalIn } from '../api.ts';
import { followProfile } from '../language/language-of-profile.ts';
import { dropDraft, dropShownUser, keepDraft, noteActing, readDraft } from './draft.ts';
import { rememberPage } from './way-back.ts';

/**
 * The data of a page for logged-in users. Everyone else is sent to the login and returns. Loaded by script: after a
 * provider login the first navigation carries no Strict cookie, but requests of the page do. `read` resolves to
 * undefined if the browser navigates away.
 */
export function useSessionData<T>(read: () => Promise<T | undefined>) {
  const [data, setData] = useState<T>();
  const [refusal, setRefusal] = useState<Refusal>();

  /** The newest reading decides: an older one may be answered after it. */
  const turn = useRef(0);

  const load = async () => {
    turn.current += 1;
    const own = turn.current;
    try {
      const [profile, found, follow] = await Promise.all([readProfile(), read(), followProfile()]);
      // The browser navigates away: nothing to show.
      if (own !== turn.current || found === undefined || follow()) return;
      belongTo(profile);
      setData(() => found);
    } catch (error) {
      if (own !== turn.current) return;
      const found = refusalIn(error);
      if (found.code === 'OTHER_USER') return loadAgain();
      if (found.code !== 'UNAUTHENTICATED') return setRefusal(found);
      dropShownUser();
      rememberPage();
      location.replace(pagePaths.logIn);
    }
  };

  useEffect(() => {
    void load();
    const events = new AbortController();
    // A page from the back/forward cache may show a user who has since logged out.
    addEventListener('pageshow', ({ persisted }) => persisted && location.reload(), events);
    const check = () => void reloadIfAnother().catch(() => undefined);
    addEventListener('focus', check, events);
    document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && check(), events);
    return () => events.abort();
  }, []);

  return { data, setData, refusal, load };
}

/** The user to whom the drafts of this tab belong. */
const OWNER = 'owner';

/** The calls of this page act for the shown user only. What another one has typed in this tab is deleted. */
function belongTo({ user: { id }, impersonation }: ProfileGetOutput): void {
  headers['expected-user'] = id;
  if ((readDraft(OWNER)['id'] ?? id) !== id) {
    dropDraft();
    noteActing(impersonation !== undefined);
  }
  keepDraft(OWNER, { id });
}

/** Another tab may have logged in another user. */
async function reloadIfAnother(): Promise<void> {
  const [shown, now] = await Promise.all([readProfile(), api.profile.get.query()]);
  if (now.user.id !== shown.user.id) loadAgain();
}

function loadAgain(): void {
  dropShownUser();
  location.reload();
}
