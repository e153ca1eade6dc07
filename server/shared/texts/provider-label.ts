import { IMPERSONATION } from '../method-names.ts';
import type { Write } from './template.ts';

const labels = new Map([
  ['github', 'GitHub'],
  ['gitlab', 'GitLab'],
  ['linkedin', 'LinkedIn'],
]);

/**
 * A provider's name in mails and on pages: `google` becomes Google. `idp` has no name of its own and becomes "single
 * sign-on".
 */
export function providerLabel(name: string, write: Write): string {
  if (name === 'idp') return write('common.singleSignOn');
  return (
    labels.get(name) ??
    name.replace(/(^|[-_])([a-z])/g, (_, gap: string, letter: string) => (gap && ' ') + letter.toUpperCase())
  );
}

/** The name of a provider at the beginning of a sentence. */
export function providerLabelFirst(name: string, write: Write): string {
  const label = providerLabel(name, write);
  return label.charAt(0).toUpperCase() + label.slice(1);
}

/** The login method in words: `method` is `password`, `passkey`, `email-code`, `impersonation`, or the name of a provider. */
export const wayIn = (method: string, write: Write): string =>
  method === 'password' || method === 'passkey' || method === 'email-code' || method === IMPERSONATION
    ? write(`common.wayIn.${method}`)
    : write('common.wayIn.provider', { provider: providerLabel(method, write) });
