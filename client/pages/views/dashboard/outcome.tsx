import { type Refusal, refusalIn } from '../../api.ts';
import { Alert, Notice } from '../../form/form.tsx';
import { sentenceFor } from '../../form/use-form.ts';
import { text } from '../../texts.ts';
import { sessionEnded } from '../session-ended.tsx';

interface Props {
  refusal: Refusal | undefined;
  notice?: string | undefined;
}

/** How the press of a button went, in a card of the dashboard. */
export const Outcome = ({ refusal, notice }: Props) => (
  <>
    {refusal && <Alert>{sessionEnded(refusal)?.message ?? explain(refusal)}</Alert>}
    {notice && <Notice>{notice}</Notice>}
  </>
);

const explain = (refusal: Refusal): string =>
  refusal.code === 'LAST_LOGIN_METHOD' ? text('dashboard.lastLoginMethod') : sentenceFor(refusal);

/** For what is gone meanwhile: that is what was asked for. */
export async function unlessGone(removal: Promise<unknown>): Promise<void> {
  await removal.catch((error: unknown) => {
    if (refusalIn(error).code !== 'NOT_FOUND') throw error;
  });
}
