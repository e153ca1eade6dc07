import { Alert, Button } from '../form/form.tsx';
import { sentenceFor } from '../form/use-form.ts';
import { text } from '../language/texts.ts';
import type { usePages } from '../use-pages.ts';
import { sessionEnded } from './session-ended.tsx';

type Props = Omit<ReturnType<typeof usePages>, 'items'>;

/** The button for the next page of a list, and the error if it could not be loaded. */
export const ShowMore = ({ hasMore, isBusy, refusal, readMore }: Props) => (
  <>
    {refusal && <Alert>{sessionEnded(refusal)?.message ?? sentenceFor(refusal)}</Alert>}
    {hasMore && (
      <Button kind="secondary" isBusy={isBusy} busy={text('common.oneMoment')} onClick={() => void readMore()}>
        {text('common.showMore')}
      </Button>
    )}
  </>
);
