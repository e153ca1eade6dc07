interface PasswordRule {
  label: string;
  isMet(password: string): boolean;
}

const lengthOf = (text: string) => [...text].length;

/** The rules of `newPassword` in routers/fields.ts, for showing them as they are met; the service checks them again. */
export const passwordRules: PasswordRule[] = [
  { label: '8 to 128 characters', isMet: (password) => lengthOf(password) >= 8 && lengthOf(password) <= 128 },
  { label: 'an uppercase letter', isMet: (password) => /\p{Lu}/u.test(password) },
  { label: 'a lowercase letter', isMet: (password) => /\p{Ll}/u.test(password) },
  { label: 'a digit', isMet: (password) => /\p{Nd}/u.test(password) },
  { label: 'a symbol, such as ! or -', isMet: (password) => /[^\p{L}\p{Nd}]/u.test(password) },
];

/** The message for each field whose password breaks a rule. */
export function unmetRules<Name extends string>(passwords: Record<Name, string>): Partial<Record<Name, string>> {
  const entries = Object.entries<string>(passwords)
    .map(([name, password]) => [name, passwordRules.filter((rule) => !rule.isMet(password))] as const)
    .filter(([, unmet]) => unmet.length > 0)
    .map(([name, unmet]) => [name, `Still missing: ${unmet.map(({ label }) => label).join(', ')}`]);
  return Object.fromEntries(entries);
}
