import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { text } from '../../../language/texts.ts';
import '../../../styles/security.css';

/** The steps of setting up an authenticator app. */
const STEPS = 3;

interface Props {
  /** Undefined: the only step. */
  number: number | undefined;
  title: string;
  isPrinted?: boolean;
  children: ComponentChildren;
}

/** One step, with one main button. Its heading gets the focus. */
export function Step({ number, title, isPrinted = false, children }: Props) {
  const id = useId();
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => heading.current?.focus(), []);
  return (
    <section class={isPrinted ? 'step stack printed' : 'step stack'} aria-labelledby={id}>
      <h3 id={id} ref={heading} tabIndex={-1}>
        {number !== undefined && (
          <span class="step-number">{text('dashboard.appSetup.step', { number, total: STEPS })}</span>
        )}
        {title}
      </h3>
      {children}
    </section>
  );
}
