import { settings } from '../settings.ts';
import { keepDraft, readDraft } from './draft.ts';

/** The provider that this tab last went to: the URL to which it returns does not name it. */
const GONE_TO = 'gone-to';

export const rememberProvider = (name: string): void => keepDraft(GONE_TO, { name });

/** Undefined before the first use of a provider, and if storage is disabled. */
export const lastProvider = (): string | undefined =>
  settings.providers.find((name) => name === readDraft(GONE_TO)['name']);
