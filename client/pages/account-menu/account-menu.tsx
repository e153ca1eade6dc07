import type { ProfileGetOutput } from 'account-client';
import { useEffect, useState } from 'preact/hooks';
import { pagePaths } from '../../../server/shared/page-paths.ts';
import { api, type Profile } from '../api.ts';
import { Alert } from '../form/form.tsx';
import { Icon, type IconName } from '../icons/icon.tsx';
import { text } from '../language/texts.ts';
import { isActing, noteActing } from '../session/draft.ts';
import { useLogOut } from '../session/use-log-out.ts';
import { Picture } from './picture.tsx';
import { keepShownUser, keptUser, noteRole, type ShownUser } from './shown-user.ts';
import { useMenu } from './use-menu.ts';

/**
 * The menu of the logged-in user, in the header. It has its place from the first paint. While an administrator acts for
 * a user, a bar takes its place.
 */
export function AccountMenu({ user }: { user: Profile | undefined }) {
  if (isActing()) return null;
  return <Menu user={user ? keepShownUser(user) : keptUser()} />;
}

let reading: Promise<ProfileGetOutput> | undefined;

/** Once for the page, which begins with the menu alone. After a failure the next reader asks again. */
export const readProfile = (): Promise<ProfileGetOutput> => {
  reading ??= api.profile.get.query().then(
    (answer) => {
      noteActing(answer.impersonation !== undefined);
      noteRole(answer.role);
      return answer;
    },
    (error: unknown) => {
      reading = undefined;
      throw error;
    },
  );
  return reading;
};

/** For pages that do not load the profile themselves. Undefined until it is read, or if it cannot be. */
export function useProfile(): ProfileGetOutput | undefined {
  const [found, setFound] = useState<ProfileGetOutput>();
  useEffect(() => {
    readProfile().then(setFound, () => undefined);
  }, []);
  return found;
}

/** Without a profile the menu has everything but the name. */
export const OwnAccountMenu = () => <AccountMenu user={useProfile()?.user} />;

export function Menu({ user }: { user: ShownUser | undefined }) {
  const { isOpen, root, button } = useMenu();
  const { isBusy, problem, logOut } = useLogOut();
  return (
    <div class="account-menu" {...root}>
      <button class="account-button" aria-label={text('common.account.menu')} {...button}>
        <Picture class="account-picture" size={36} name={user?.name ?? ''} src={user?.avatar ?? ''} />
      </button>
      {isOpen && (
        <div class="popover">
          {user && (
            <p class="account-name">
              <strong>{user.name}</strong>
              <span class="hint">{user.email}</span>
            </p>
          )}
          {problem && <Alert>{problem}</Alert>}
          <div role="menu" aria-label={text('common.account.menu')}>
            <Item icon="user" href={pagePaths.dashboard} label={text('common.account.profile')} />
            <Item icon="shield" href={pagePaths.security} label={text('common.account.security')} />
            {user?.isAdministrator && (
              <Item icon="users" href={pagePaths.admin} label={text('common.account.administration')} />
            )}
            <button type="button" role="menuitem" tabIndex={-1} aria-disabled={isBusy} onClick={() => void logOut()}>
              <Icon name="logOut" />
              {isBusy ? text('common.logOut.busy') : text('common.logOut.action')}
            </button>
          </div>
        </div>
      )}
    </div>
  );
}

const Item = ({ icon, href, label }: { icon: IconName; href: string; label: string }) => (
  <a role="menuitem" tabIndex={-1} href={href}>
    <Icon name={icon} />
    {label}
  </a>
);
