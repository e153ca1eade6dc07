import type { PagePath } from '../../server/shared/page-paths.ts';
import { Icon, type IconName } from './icons/icon.tsx';
import './styles/lists.css';
import './styles/parts.css';

export interface Part {
  path: PagePath;
  icon: IconName;
  label: string;
  /** With a space before it: it leads elsewhere. */
  isApart?: true;
}

/** On a phone a row of links scrolls: the `ref` of the current one. */
export const bringIntoSight = (link: HTMLElement | null) =>
  link?.scrollIntoView({ block: 'nearest', inline: 'center' });

/** The links between the pages of a wide page. */
export const PartsNav = ({ label, parts }: { label: string; parts: readonly Part[] }) => (
  <nav class="parts" aria-label={label}>
    {parts.map(({ path, icon, label: name, isApart }) => (
      <a
        key={path}
        href={path}
        class={isApart && 'apart'}
        {...(path === location.pathname && { 'aria-current': 'page', ref: bringIntoSight })}
      >
        <Icon name={icon} />
        {name}
      </a>
    ))}
  </nav>
);
