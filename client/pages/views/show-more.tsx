import { Alert, Button } from '../form/form.tsx';
import { sentenceFor } from '../form/use-form.ts';
import { text } from '../texts.ts';
import type { usePages } from '../use-pages.ts';
import { sessionEnded } from './session-ended.tsx';

type Props = Omit<ReturnType<typeof usePages>, 'items'>;

/** Below a list that is read a page at a time: the button for the next page, and why it could not be read. */
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
