import type { ComponentChildren } from 'preact';
import { Page } from '../page.tsx';

interface Props {
  /** Why, and what helps. */
  children: ComponentChildren;
}

/** In place of the page of a mailed link whose token the service does not accept. */
export function LinkRefused({ children }: Props) {
  return (
    <Page title="This link does not work" isNews>
      {children}
    </Page>
  );
}
