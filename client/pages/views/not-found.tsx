import { pagePaths } from '../../../server/page-paths.ts';
import { Page } from '../page.tsx';

export function NotFound() {
  return (
    <Page title="Page not found">
      <p>There is nothing at this address. Perhaps the link is incomplete.</p>
      <p>
        <a href={pagePaths.home}>To the start</a>
      </p>
    </Page>
  );
}
