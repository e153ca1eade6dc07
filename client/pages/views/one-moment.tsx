import { Page } from '../page.tsx';
import { text } from '../texts.ts';

/** Until it is known whether there is a session, and what its user may see. */
export function OneMoment() {
  return (
    <Page title={text('common.oneMoment')}>
      <p aria-busy="true">{text('common.lookingForSession')}</p>
    </Page>
  );
}
