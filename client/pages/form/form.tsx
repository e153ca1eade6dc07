import type { ComponentChildren, RefObject } from 'preact';
import { useEffect } from 'preact/hooks';

interface Props {
  element: RefObject<HTMLFormElement | null>;
  onSubmit(event: Event): void;
  problem: ComponentChildren;
  children: ComponentChildren;
}

/** The form shows errors at their fields, so the browser's own bubbles are off. */
export function Form({ element, onSubmit, problem, children }: Props) {
  return (
    <form ref={element} onSubmit={onSubmit} noValidate>
      {problem && <Alert>{problem}</Alert>}
      {children}
    </form>
  );
}

export function Alert({ children }: { children: ComponentChildren }) {
  return (
    <div class="notice wrong" role="alert">
      {children}
    </div>
  );
}

const NOTICE = 'notice-shown';

/** Calls `listener` when the page shows another notice. Returns a function that unsubscribes. */
export function onNotice(listener: () => void): () => void {
  addEventListener(NOTICE, listener);
  return () => removeEventListener(NOTICE, listener);
}

/** A success message. */
export function Notice({ children }: { children: ComponentChildren }) {
  useEffect(() => void dispatchEvent(new Event(NOTICE)), []);
  return (
    <div class="notice" role="status">
      {children}
    </div>
  );
}

interface ButtonProps {
  children: string;
  /** The label of the button while it is busy. */
  busy: string;
  isBusy: boolean;
  /** True while the work waits for the user's answer: then the label is the ordinary one. */
  isAsking?: boolean;
  onClick?: () => void;
  kind?: 'primary' | 'secondary' | 'danger';
  /** The id of the element that distinguishes buttons with the same label. */
  describedBy?: string;
}

/** A busy button keeps the focus; a disabled one would lose it. */
export function Button({
  children,
  busy,
  isBusy,
  isAsking = false,
  onClick,
  kind = 'primary',
  describedBy,
}: ButtonProps) {
  const works = isBusy && !isAsking;
  return (
    <button
      type={onClick ? 'button' : 'submit'}
      class={kind}
      aria-disabled={isBusy}
      aria-describedby={describedBy}
      onClick={() => {
        if (!isBusy) onClick?.();
      }}
    >
      {works && <span class="spinner" aria-hidden="true" />}
      {works ? busy : children}
    </button>
  );
}
