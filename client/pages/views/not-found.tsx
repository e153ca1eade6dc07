import { pagePaths } from '../../../server/page-paths.ts';
import { Page } from '../page.tsx';
import { text } from '../texts.ts';

export function NotFound() {
  return (
    <Page title={text('common.notFound.title')}>
      <p>{text('common.notFound.explanation')}</p>
      <p>
        <a href={pagePaths.home}>{text('common.toStart')}</a>
      </p>
    </Page>
  );
}
