/** The operator's own pages: an address, or a path of the host of APP_URL. */
export interface OperatorPages {
  support?: string | undefined;
  terms?: string | undefined;
  privacy?: string | undefined;
}

const labels = { support: 'Support', terms: 'Terms of service', privacy: 'Privacy policy' } as const;

/** The links that pages and mails end with; none where nothing is configured. */
export const brandLinks = (pages: OperatorPages): { label: string; url: string }[] =>
  (['support', 'terms', 'privacy'] as const).flatMap((name) => {
    const url = pages[name];
    return url === undefined ? [] : [{ label: labels[name], url }];
  });
