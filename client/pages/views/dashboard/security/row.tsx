import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Icon, type IconName } from '../../../icons/icon.tsx';
import { text } from '../../../language/texts.ts';
import type { RowState } from './use-open-row.ts';
import '../../../styles/security.css';

interface Props {
  row: RowState;
  icon: IconName;
  title: string;
  /** What is known of it: `3 passkeys`. */
  state: ComponentChildren;
  /** The label of the button that opens the row. */
  action: string;
  /** Gets the focus when a pressed button is gone. */
  heading?: RefObject<HTMLHeadingElement | null>;
  /** The message of a success. It is shown after the row was closed, too. */
  notice?: ComponentChildren;
  children: ComponentChildren;
}

/** One login method: its state, and a button that opens its forms in place. */
export function Row({ row: { id, isOpen, toggle }, icon, title, state, action, heading, notice, children }: Props) {
  const section = useRef<HTMLElement>(null);
  // Kept when another row opens: it may show a secret for the only time, or hold typed text.
  const wasOpen = useRef(isOpen);
  wasOpen.current ||= isOpen;
  // The browser has looked for it before it was rendered.
  useEffect(() => {
    if (isOpen) section.current?.scrollIntoView({ block: 'nearest' });
  }, []);
  return (
    <section class="row" id={id} ref={section} aria-labelledby={`${id}-title`}>
      <div class="row-head">
        <span class="mark">
          <Icon name={icon} />
        </span>
        <div>
          <h2 id={`${id}-title`} ref={heading ?? null} tabIndex={-1}>
            {title}
          </h2>
          <div class="hint">{state}</div>
        </div>
        <button
          type="button"
          class="secondary small"
          id={`${id}-toggle`}
          aria-expanded={isOpen}
          aria-describedby={`${id}-title`}
          onClick={toggle}
        >
          {isOpen ? text('dashboard.security.close') : action}
        </button>
      </div>
      {notice}
      {wasOpen.current && (
        <div class="row-body stack" hidden={!isOpen}>
          {children}
        </div>
      )}
    </section>
  );
}
