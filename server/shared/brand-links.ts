/** The operator's own pages: a URL, or a path on the host of APP_URL. */
export interface OperatorPages {
  support?: string | undefined;
  terms?: string | undefined;
  privacy?: string | undefined;
}

/** The name of the page that users go back to. */
export const homeName = (name: string | undefined, home: string): string => name ?? new URL(home).host;

/**
 * The links at the end of pages and mails; empty if none are configured. Their labels are the texts
 * `common.brandLinks`.
 */
export const brandLinks = (pages: OperatorPages): { name: keyof OperatorPages; url: string }[] =>
  (['support', 'terms', 'privacy'] as const).flatMap((name) => {
    const url = pages[name];
    return url === undefined ? [] : [{ name, url }];
  });
