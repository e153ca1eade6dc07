import { Page } from '../page.tsx';

/** Until it is known whether there is a session, and what its user may see. */
export function OneMoment() {
  return (
    <Page title="One moment …">
      <p aria-busy="true">Looking whether you are logged in.</p>
    </Page>
  );
}
