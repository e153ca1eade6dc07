import { sessionPaths } from '../../../server/shared/page-paths.ts';
import { OwnAccountMenu } from '../account-menu/account-menu.tsx';
import { text } from '../language/texts.ts';
import { Page } from '../page.tsx';
import { isOnlyPassedThrough } from '../session/way-back.ts';
import { Skeleton } from './skeleton.tsx';

/**
 * Shown until the session, the rights of its user or the script of the page are known. The pages of a session have only
 * their header then: their script has their links and skeleton.
 */
export function OneMoment({ isPassedThrough = isOnlyPassedThrough() }) {
  const title = text('common.oneMoment');
  if (isPassedThrough || !sessionPaths.some((path) => path === location.pathname))
    return (
      <Page title={title} isLoading>
        <Skeleton />
      </Page>
    );
  return (
    <Page title={title} isWide actions={<OwnAccountMenu />}>
      <p class="waiting unseen" aria-busy="true">
        {text('common.lookingForSession')}
      </p>
    </Page>
  );
}
