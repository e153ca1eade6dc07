import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { brandLinks } from '../../server/brand-links.ts';
import { pagePaths } from '../../server/page-paths.ts';
import { LanguagePicker } from './language-picker.tsx';
import { settings } from './settings.ts';
import { markup, text } from './texts.ts';

const { name: siteName = text('common.page.siteName'), logo } = settings.brand;
const links = brandLinks(settings.brand);

interface Props {
  /** The heading of the page, and the title of its tab. */
  title: string;
  /** Whether the page took the place of another without a load: its heading takes the focus, so that it is read out. */
  isNews?: boolean;
  isWide?: boolean;
  actions?: ComponentChildren;
  children: ComponentChildren;
}

export function Page({ title, isNews = false, isWide = false, actions, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  // Together with the heading: what is read out first must be the new page's.
  useLayoutEffect(() => {
    document.title = `${title} – ${siteName}`;
    if (isNews) heading.current?.focus();
  }, [title, isNews]);
  return (
    <>
      <header class={isWide ? 'wide' : 'narrow'}>
        <a class="brand" href={pagePaths.home}>
          {logo ? <img src={logo} alt={siteName} /> : siteName}
        </a>
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

/** Until a mail server is configured, mails go to the embedded mailbox; the hint links to it. */
export function MailboxHint() {
  const { mailbox } = settings;
  if (!mailbox) return null;
  return <p class="hint">{markup('common.mailboxHint', { link: (label) => <a href={mailbox}>{label}</a> })}</p>;
}
