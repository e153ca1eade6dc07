import { type Refusal, refusalIn } from '../../api.ts';
import { Alert, Notice } from '../../form/form.tsx';
import { sentenceFor } from '../../form/use-form.ts';
import { text } from '../../language/texts.ts';
import { sessionEnded } from '../session-ended.tsx';

interface Props {
  refusal: Refusal | undefined;
  notice?: string | undefined;
}

/** The outcome of a button press, in a card of the dashboard. */
export const Outcome = ({ refusal, notice }: Props) => (
  <>
    {refusal && <Alert>{sessionEnded(refusal)?.message ?? explain(refusal)}</Alert>}
    {notice && <Notice>{notice}</Notice>}
  </>
);

const explain = (refusal: Refusal): string =>
  refusal.code === 'LAST_LOGIN_METHOD' ? text('dashboard.lastLoginMethod') : sentenceFor(refusal);

/** For something already gone: that is the requested result. */
export async function unlessGone(removal: Promise<unknown>): Promise<void> {
  await removal.catch((error: unknown) => {
    if (refusalIn(error).code !== 'NOT_FOUND') throw error;
  });
}
