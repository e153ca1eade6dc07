import { dropDraft, keepDraft, readDraft } from './draft.ts';

/**
 * What the user started on a page before leaving for a provider: the label of the pressed button, and the id of the
 * element that distinguishes it from others with this label.
 */
const BEGUN = 'begun';

/** In a group the button that waits for the answer. */
const PRESSED = '[type="submit"], [aria-disabled="true"]';

/** `pressed` is the button, or the form or the group of buttons that has it. */
export function rememberBegun(pressed: Element | null | undefined): void {
  const button = pressed instanceof HTMLButtonElement ? pressed : pressed?.querySelector(PRESSED);
  if (!button) return;
  const { pathname: page, search, hash } = location;
  keepDraft(BEGUN, { page, query: search + hash, label: button.textContent, describedBy: describedBy(button) });
}

/** The query and the fragment of this page when the user left, until `focusBegun`. */
export function queryOfBegun(): string {
  const { page, query = '' } = readDraft(BEGUN);
  return page === location.pathname ? query : '';
}

/** The label of the button that was pressed on this page, until it has the focus. */
export function labelOfBegun(): string | undefined {
  const { page, label } = readDraft(BEGUN);
  return page === location.pathname ? label : undefined;
}

/** Focuses the button once: pressing it is the step left to the user. No-op until it is rendered. */
export function focusBegun(): void {
  const label = labelOfBegun();
  const button = [...document.querySelectorAll<HTMLElement>('main button')].find(
    (drawn) => drawn.textContent === label && describedBy(drawn) === readDraft(BEGUN)['describedBy'],
  );
  if (!button) return;
  dropDraft(BEGUN);
  button.focus();
}

const describedBy = (button: Element): string => button.getAttribute('aria-describedby') ?? '';
