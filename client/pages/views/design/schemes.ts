export type Scheme = 'light' | 'dark';

const isRoot = (rule: CSSRule): rule is CSSStyleRule => rule instanceof CSSStyleRule && rule.selectorText === ':root';

/** The declarations of `:root` in each scheme: the rules of the style sheets themselves, so that nothing is written twice. */
function declarationsOf(scheme: Scheme): CSSStyleDeclaration[] {
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
  const dark = rules.filter(
    (rule) => rule instanceof CSSMediaRule && /prefers-color-scheme: ?dark/.test(rule.conditionText),
  );
  const inDark = dark.flatMap((rule) => [...(rule as CSSMediaRule).cssRules]);
  const found = [...rules, ...(scheme === 'dark' ? inDark : [])];
  return found.filter(isRoot).map(({ style }) => style);
}

/** The properties of the design and their values in the light scheme, in the order of the sheet. */
export function tokens(): { name: string; value: string }[] {
  const found = declarationsOf('light').flatMap((style) =>
    [...style].filter((name) => name.startsWith('--')).map((name) => [name, style.getPropertyValue(name)] as const),
  );
  return [...new Map(found)].map(([name, value]) => ({ name, value }));
}

/** Shows an element in a scheme, whatever the reader's. */
export const inScheme = (scheme: Scheme) => (element: HTMLElement | null) => {
  if (!element) return;
  for (const style of declarationsOf(scheme))
    for (const name of style) if (name.startsWith('--')) element.style.setProperty(name, style.getPropertyValue(name));
  element.style.colorScheme = scheme;
};
