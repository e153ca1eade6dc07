import type { ComponentChildren } from 'preact';
import { Page } from '../page.tsx';
import { text } from '../texts.ts';

interface Props {
  /** Why, and what helps. */
  children: ComponentChildren;
}

/** In place of the page of a mailed link whose token the service does not accept. */
export function LinkRefused({ children }: Props) {
  return (
    <Page title={text('entry.linkRefused')} isNews>
      {children}
    </Page>
  );
}
