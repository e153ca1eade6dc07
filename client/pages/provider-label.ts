import { providerLabel } from '../../server/provider-label.ts';

export { providerLabel };

/** The name of a provider where a sentence begins with it. */
export function providerLabelFirst(name: string): string {
  const label = providerLabel(name);
  return label.charAt(0).toUpperCase() + label.slice(1);
}

/** How the user logged in, in words: `method` is `password`, `passkey`, or the name of a provider. */
export const wayIn = (method: string): string =>
  method === 'password' || method === 'passkey' ? `with a ${method}` : `with ${providerLabel(method)}`;
