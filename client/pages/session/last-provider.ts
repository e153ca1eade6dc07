import { keepDraft, readDraft } from './draft.ts';
import { settings } from './settings.ts';

/** The provider to which this tab has gone last: the address in which it comes back does not name it. */
const GONE_TO = 'gone-to';

export const rememberProvider = (name: string): void => keepDraft(GONE_TO, { name });

/** Undefined where the tab has gone to none, or keeps nothing. */
export const lastProvider = (): string | undefined =>
  settings.providers.find((name) => name === readDraft(GONE_TO)['name']);
