import type { ComponentChildren, RefObject } from 'preact';

interface Props {
  element: RefObject<HTMLFormElement | null>;
  onSubmit(event: Event): void;
  problem: ComponentChildren;
  children: ComponentChildren;
}

/** The form shows errors itself, at their fields, so the browser's own bubbles are off. */
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

export function Notice({ children }: { children: ComponentChildren }) {
  return (
    <div class="notice" role="status">
      {children}
    </div>
  );
}

interface ButtonProps {
  children: string;
  /** The button's label while it works. */
  busy: string;
  isBusy: boolean;
  onClick?: () => void;
  kind?: 'primary' | 'secondary';
  /** The id of what tells buttons of one label apart. */
  describedBy?: string;
}

/** A busy button keeps the focus: a disabled one would lose it. */
export function Button({ children, busy, isBusy, onClick, kind = 'primary', describedBy }: ButtonProps) {
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
      {isBusy && <span class="spinner" aria-hidden="true" />}
      {isBusy ? busy : children}
    </button>
  );
}
