import { LOCALES_PARAMETER } from '../../../server/shared/texts/languages.ts';

/** The query that gives another page the language that an application asks for here; empty without one. */
export function askedLanguage(): string {
  const asked = new URLSearchParams(location.search).get(LOCALES_PARAMETER);
  return asked === null ? '' : `?${new URLSearchParams({ [LOCALES_PARAMETER]: asked })}`;
}

/** The address without that language, if it is one of ours. */
export function withoutAskedLanguage(address: string): string {
  const url = new URL(address, location.origin);
  if (url.origin !== location.origin || !url.searchParams.has(LOCALES_PARAMETER)) return address;
  url.searchParams.delete(LOCALES_PARAMETER);
  return url.pathname + url.search + url.hash;
}
