import type { ComponentChildren, RefObject, VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Icon, type IconName } from '../icons/icon.tsx';

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
    <div class="notice failure" role="alert">
      <Icon name="failure" />
      <div>{children}</div>
    </div>
  );
}

const NOTICE = 'notice-shown';

/** Calls `listener` when the page shows another notice. Returns a function that unsubscribes. */
export function onNotice(listener: () => void): () => void {
  addEventListener(NOTICE, listener);
  return () => removeEventListener(NOTICE, listener);
}

/** How long a message of success is shown. */
export const SHOWN_MS = 8000;

/** A message of success. It leaves after some seconds, unless it `stays` because the user has to act on it. */
export function Notice({ stays = false, children }: { stays?: boolean; children: ComponentChildren }) {
  // The live region is there before its text: otherwise some screen readers do not read it.
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    setShown(true);
    const timer = stays ? undefined : setTimeout(() => setShown(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [children]);
  useEffect(() => {
    dispatchEvent(new Event(NOTICE));
    // One at a time: they share their place.
    return stays ? undefined : onNotice(() => setShown(false));
  }, []);
  return (
    <div class={stays ? undefined : 'toast'} role="status">
      {isShown && (
        <div class="notice success">
          <Icon name="success" />
          <div>{children}</div>
        </div>
      )}
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
  /** By rank: one `primary` at most is in sight; `quiet` is as plain as a link; `danger` cannot be undone. */
  kind?: 'primary' | 'secondary' | 'quiet' | 'danger';
  /** The name of an icon, or a logo. */
  icon?: IconName | VNode;
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
  icon,
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
      {works ? <span class="spinner" aria-hidden="true" /> : typeof icon === 'string' ? <Icon name={icon} /> : icon}
      {works ? busy : children}
    </button>
  );
}
