import { text } from '../language/texts.ts';

interface Props {
  /** The lines that keep the place of what is loaded. */
  lines?: number;
}

/** Keeps the place of what is loaded. The footer is not shown before, so that nothing moves: see loading.css. */
export const Skeleton = ({ lines = 3 }: Props) => (
  <div class="skeleton" aria-busy="true">
    <p class="unseen">{text('common.oneMoment')}</p>
    {Array.from({ length: lines }, (_, line) => (
      <span key={line} class="line" />
    ))}
  </div>
);
