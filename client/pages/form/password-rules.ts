import { type PasswordRule, passwordRules } from 'account-client';
import { textIfAny } from '../../../server/shared/texts/template.ts';
import { text } from '../language/texts.ts';

/** The text of a rule, in the language of the page. */
export const labelOf = ({ rules: [name], label }: PasswordRule): string =>
  textIfAny(text, `common.passwordRules.${name}`) ?? label;

export const listOf = (rules: readonly PasswordRule[]): string => rules.map(labelOf).join(', ');

/** The message for each field with a password that breaks a rule. */
export function unmetRules<Name extends string>(passwords: Record<Name, string>): Partial<Record<Name, string>> {
  const entries = Object.entries<string>(passwords)
    .map(([name, password]) => [name, passwordRules.filter((rule) => !rule.isMet(password))] as const)
    .filter(([, unmet]) => unmet.length > 0)
    .map(([name, unmet]) => [name, text('common.passwordField.missing', { rules: listOf(unmet) })]);
  return Object.fromEntries(entries);
}
