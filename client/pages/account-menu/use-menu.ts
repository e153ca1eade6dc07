import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

/** A page takes the place of the one that waits for its script: a menu that is open stays open. */
let wasOpen = false;

/** A menu button by the ARIA Authoring Practices: arrow keys, Home, End and Escape; leaving closes the menu. */
export function useMenu() {
  const [isOpen, setShown] = useState(wasOpen);
  const setOpen = (isNow: boolean) => {
    wasOpen = isNow;
    setShown(isNow);
  };
  const root = useRef<HTMLDivElement>(null);
  /** The item to focus when the menu opens: 0 the first, -1 the last. */
  const start = useRef(0);

  const items = () => [...(root.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])];
  const focus = (index: number) =>
    items()
      .at(index % items().length)
      ?.focus();
  const open = (index: number) => {
    start.current = index;
    setOpen(true);
  };
  const close = () => {
    setOpen(false);
    root.current?.querySelector('button')?.focus();
  };

  useLayoutEffect(() => {
    if (isOpen) focus(start.current);
  }, [isOpen]);
  useEffect(() => {
    if (!isOpen) return;
    const leave = ({ target }: Event) => {
      if (!root.current?.contains(target as Node)) setOpen(false);
    };
    addEventListener('pointerdown', leave);
    return () => removeEventListener('pointerdown', leave);
  }, [isOpen]);
  /** Without a delay: the focus may leave before an effect runs. */
  const onFocusOut = ({ relatedTarget }: FocusEvent) => {
    if (relatedTarget && !root.current?.contains(relatedTarget as Node)) setOpen(false);
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const at = items().indexOf(document.activeElement as HTMLElement);
    const keys: Record<string, () => void> = isOpen
      ? {
          ArrowDown: () => focus(at + 1),
          ArrowUp: () => focus(Math.max(at, 0) - 1),
          Home: () => focus(0),
          End: () => focus(-1),
          Escape: close,
        }
      : { ArrowDown: () => open(0), ArrowUp: () => open(-1) };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };

  return {
    isOpen,
    /** The props of the element around the button and the menu. */
    root: { ref: root, onKeyDown, onFocusOut },
    button: {
      type: 'button' as const,
      'aria-haspopup': 'menu' as const,
      'aria-expanded': isOpen,
      onClick: () => (isOpen ? close() : open(0)),
    },
  };
}
