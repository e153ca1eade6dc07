import type { ComponentChildren } from 'preact';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { text } from '../../language/texts.ts';
import { Page } from '../../page.tsx';

interface Props {
  /** By default that of a refused link. */
  title?: string;
  explanation: string;
  children?: ComponentChildren;
  /** The button; without it a link to the start. */
  next?: { href: string; label: string; onClick?(): void };
}

/** Replaces the form of a mailed link: what happened, and where to go next. */
export function LinkOutcome({ title = text('entry.linkRefused'), explanation, children, next }: Props) {
  return (
    <Page title={title} isNews>
      <p>{explanation}</p>
      {children}
      {next ? (
        <a class="primary button" href={next.href} onClick={next.onClick}>
          {next.label}
        </a>
      ) : (
        <p class="aside">
          <a href={pagePaths.home}>{text('common.toStart')}</a>
        </p>
      )}
    </Page>
  );
}
