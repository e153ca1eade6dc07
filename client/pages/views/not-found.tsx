import { pagePaths } from '../../../server/shared/page-paths.ts';
import { text } from '../language/texts.ts';
import { Page } from '../page.tsx';

export function NotFound() {
  return (
    <Page title={text('common.notFound.title')}>
      <p>{text('common.notFound.explanation')}</p>
      <a class="primary button" href={pagePaths.home}>
        {text('common.toStart')}
      </a>
    </Page>
  );
}
