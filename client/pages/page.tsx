import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { brandLinks, homeName } from '../../server/shared/brand-links.ts';
import { pagePaths } from '../../server/shared/page-paths.ts';
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
  actions?: ComponentChildren;
  children: ComponentChildren;
}

export function Page({ title, isNews = false, isWide = false, actions, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  // Set together with the heading, because screen readers read the title first.
  useLayoutEffect(() => {
    document.title = `${title} – ${siteName}`;
    if (isNews) heading.current?.focus();
  }, [title, isNews]);
  return (
    <>
      <header class={isWide ? 'wide' : 'narrow'}>
        <a class="brand" href={home ?? pagePaths.home}>
          {logo ? <img src={logo} alt={siteName} /> : siteName}
        </a>
        {home && (
          <a class="home" href={home}>
            {text('common.backTo', { name: homeName(settings.brand.name, home) })}
          </a>
        )}
        {actions}
      </header>
      <main class={isWide ? 'wide' : 'narrow'}>
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {children}
      </main>
      <footer class={isWide ? 'wide' : 'narrow'}>
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
