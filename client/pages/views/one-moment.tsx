import { text } from '../language/texts.ts';
import { Page } from '../page.tsx';

/** Shown until the session and the rights of its user are known. */
export function OneMoment() {
  return (
    <Page title={text('common.oneMoment')}>
      <p aria-busy="true">{text('common.lookingForSession')}</p>
    </Page>
  );
}
