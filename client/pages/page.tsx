import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { brandLinks, homeName } from '../../server/shared/brand-links.ts';
import { pagePaths } from '../../server/shared/page-paths.ts';
import { ChallengeProgress } from './challenge-progress.tsx';
import { Icon } from './icons/icon.tsx';
import { OwnImpersonationBar } from './impersonation-bar.tsx';
import { LanguagePicker } from './language/language-picker.tsx';
import { markup, text } from './language/texts.ts';
import { settings } from './settings.ts';

const { name: siteName = text('common.page.siteName'), logo, home } = settings.brand;
const links = brandLinks(settings.brand);

interface Props {
  /** The heading of the page and the title of its tab. */
  title: string;
  /** True if the page replaced another without a load: then its heading is focused, so that screen readers read it. */
  isNews?: boolean;
  isWide?: boolean;
  /** True until the title is known: a bar keeps its place. */
  isLoading?: boolean;
  /** At the end of the header. */
  actions?: ComponentChildren;
  /** The links between the pages of a wide page: beside it, on a phone above it. */
  nav?: ComponentChildren;
  /** Above everything else. By default that of an administrator who acts for the user. */
  bar?: ComponentChildren;
  children: ComponentChildren;
}

export function Page({
  title,
  isNews = false,
  isWide = false,
  isLoading = false,
  actions,
  nav,
  bar = settings.impersonation && <OwnImpersonationBar />,
  children,
}: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  // Set together with the heading, because screen readers read the title first.
  useLayoutEffect(() => {
    document.title = `${title} – ${siteName}`;
    if (isNews) heading.current?.focus();
  }, [title, isNews]);
  const width = isWide ? 'wide' : 'narrow';
  return (
    <>
      {bar}
      <header class={width}>
        <a class="brand" href={home ?? pagePaths.home}>
          {logo ? <img src={logo} alt={siteName} /> : siteName}
        </a>
        {home && (
          <a class="home" href={home}>
            <Icon name="back" />
            {text('common.backTo', { name: homeName(settings.brand.name, home) })}
          </a>
        )}
        {actions}
      </header>
      <div class={nav ? 'columns' : undefined}>
        {nav}
        <main class={width}>
          <h1 ref={heading} tabIndex={-1} class={isLoading ? 'loading' : undefined}>
            {title}
          </h1>
          {children}
          <ChallengeProgress />
        </main>
      </div>
      <footer class={width}>
        {links.map(({ name, url }) => (
          <a key={name} href={url}>
            {text(`common.brandLinks.${name}`)}
          </a>
        ))}
        <LanguagePicker />
      </footer>
    </>
  );
}

/** Until a mail server is configured, mails go to the embedded mailbox. The hint links to it. */
export function MailboxHint() {
  const { mailbox } = settings;
  if (!mailbox) return null;
  return <p class="hint">{markup('common.mailboxHint', { link: (label) => <a href={mailbox}>{label}</a> })}</p>;
}
