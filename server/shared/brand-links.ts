/** The operator's own pages: an address, or a path of the host of APP_URL. */
export interface OperatorPages {
  support?: string | undefined;
  terms?: string | undefined;
  privacy?: string | undefined;
}

/** The links that pages and mails end with; none where nothing is configured. The texts `common.brandLinks` have their labels. */
export const brandLinks = (pages: OperatorPages): { name: keyof OperatorPages; url: string }[] =>
  (['support', 'terms', 'privacy'] as const).flatMap((name) => {
    const url = pages[name];
    return url === undefined ? [] : [{ name, url }];
  });
