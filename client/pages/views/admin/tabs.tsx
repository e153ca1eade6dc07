import { text } from '../../language/texts.ts';
import { addressOf } from './address.ts';

const tabs = { users: addressOf({}), invitations: addressOf({ tab: 'invitations' }) };

/** The tab of the URL. */
export const tabOf = (search: string): keyof typeof tabs =>
  new URLSearchParams(search).get('tab') === 'invitations' ? 'invitations' : 'users';

/** The links between the users and the invitations. */
export const Tabs = ({ current }: { current: keyof typeof tabs }) => (
  <nav class="tabs" aria-label={text('admin.tabs.label')}>
    {(['users', 'invitations'] as const).map((tab) => (
      <a key={tab} href={tabs[tab]} aria-current={tab === current ? 'page' : undefined}>
        {text(`admin.tabs.${tab}`)}
      </a>
    ))}
  </nav>
);
