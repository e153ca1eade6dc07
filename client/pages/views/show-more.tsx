import { useLayoutEffect, useRef } from 'preact/hooks';
import { Alert, Button } from '../form/form.tsx';
import { sentenceFor } from '../form/use-form.ts';
import { text } from '../language/texts.ts';
import type { usePages } from '../use-pages.ts';
import { sessionEnded } from './session-ended.tsx';

type Props = Omit<ReturnType<typeof usePages>, 'items'>;

/** The button for the next page of a list, and the error if it could not be loaded. */
export function ShowMore({ hasMore, isBusy, refusal, readMore }: Props) {
  /** After the last page a line takes the place and the focus of the button. */
  const hadMore = useRef(false);
  hadMore.current ||= hasMore && !isBusy;
  const end = useRef<HTMLParagraphElement>(null);
  useLayoutEffect(() => end.current?.focus(), [hasMore]);
  return (
    <>
      {refusal && <Alert>{sessionEnded(refusal)?.message ?? sentenceFor(refusal)}</Alert>}
      {hasMore && (
        <Button kind="secondary" isBusy={isBusy} busy={text('common.oneMoment')} onClick={() => void readMore()}>
          {text('common.showMore')}
        </Button>
      )}
      {!hasMore && hadMore.current && (
        <p class="hint" ref={end} tabIndex={-1}>
          {text('dashboard.allShown')}
        </p>
      )}
    </>
  );
}
