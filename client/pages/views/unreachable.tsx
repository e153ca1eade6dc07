import type { Refusal } from '../api.ts';
import { Alert } from '../form/form.tsx';
import { sentenceFor } from '../form/use-form.ts';
import { text } from '../language/texts.ts';
import { Page } from '../page.tsx';

/** Replaces a page if its data cannot be loaded. */
export function Unreachable({ refusal }: { refusal: Refusal }) {
  return (
    <Page title={text('common.unreachable.title')}>
      <Alert>{sentenceFor(refusal)}</Alert>
      <p>
        <button type="button" class="primary" onClick={() => location.reload()}>
          {text('common.unreachable.tryAgain')}
        </button>
      </p>
    </Page>
  );
}
