import { passwordRules } from 'account-client';

/** The message for each field whose password breaks a rule. */
export function unmetRules<Name extends string>(passwords: Record<Name, string>): Partial<Record<Name, string>> {
  const entries = Object.entries<string>(passwords)
    .map(([name, password]) => [name, passwordRules.filter((rule) => !rule.isMet(password))] as const)
    .filter(([, unmet]) => unmet.length > 0)
    .map(([name, unmet]) => [name, `Still missing: ${unmet.map(({ label }) => label).join(', ')}`]);
  return Object.fromEntries(entries);
}
