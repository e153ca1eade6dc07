import type { Refusal } from '../api.ts';
import { Alert } from '../form/form.tsx';
import { sentenceFor } from '../form/use-form.ts';
import { Page } from '../page.tsx';

/** Shown instead of a page whose data cannot be loaded. */
export function Unreachable({ refusal }: { refusal: Refusal }) {
  return (
    <Page title="Something is not working">
      <Alert>{sentenceFor(refusal)}</Alert>
      <p>
        <button type="button" class="primary" onClick={() => location.reload()}>
          Try again
        </button>
      </p>
    </Page>
  );
}
