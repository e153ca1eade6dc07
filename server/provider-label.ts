const labels = new Map([
  ['idp', 'single sign-on'],
  ['github', 'GitHub'],
  ['gitlab', 'GitLab'],
  ['linkedin', 'LinkedIn'],
]);

/** A provider's name in mails and on the pages: `google` is Google, and one without a name of its own is a single sign-on. */
export const providerLabel = (name: string): string =>
  labels.get(name) ??
  name.replace(/(^|[-_])([a-z])/g, (_, gap: string, letter: string) => (gap && ' ') + letter.toUpperCase());
