import { dropDraft, keepDraft, readDraft } from '../../draft.ts';

/**
 * What the user has begun on a page before leaving it for a login at a provider: the button that was pressed, by its label and
 * the id of what tells it from others of that label.
 */
const BEGUN = 'begun';

/** `pressed` is the button, or its form. */
export function rememberBegun(pressed: Element | null | undefined): void {
  const button = pressed instanceof HTMLFormElement ? pressed.querySelector('[type="submit"]') : pressed;
  if (!button) return;
  const { pathname: page, search: query } = location;
  keepDraft(BEGUN, { page, query, label: button.textContent, describedBy: describedBy(button) });
}

/** The query of this page's address when something was begun there, until `focusBegun`. */
export function queryOfBegun(): string {
  const { page, query = '' } = readDraft(BEGUN);
  return page === location.pathname ? query : '';
}

/** The label of what was begun on this page, until its button has the focus. */
export function labelOfBegun(): string | undefined {
  const { page, label } = readDraft(BEGUN);
  return page === location.pathname ? label : undefined;
}

/** The button takes the focus, once: the one step that is left to the user. Does nothing until it is drawn. */
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
