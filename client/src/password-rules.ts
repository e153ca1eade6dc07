export interface PasswordRule {
  /** Its names in the `rules` of an error's `details`. */
  rules: readonly string[];
  /** The requirement in words that complete “It needs”. */
  label: string;
  isMet(password: string): boolean;
}

const lengthOf = (text: string) => [...text].length;

/** The rules for a new password, to show while it is typed. The service checks them again. */
export const passwordRules: readonly PasswordRule[] = [
  {
    rules: ['too_short', 'too_long'],
    label: '8 to 128 characters',
    isMet: (password) => lengthOf(password) >= 8 && lengthOf(password) <= 128,
  },
  { rules: ['uppercase'], label: 'an uppercase letter', isMet: (password) => /\p{Lu}/u.test(password) },
  { rules: ['lowercase'], label: 'a lowercase letter', isMet: (password) => /\p{Ll}/u.test(password) },
  { rules: ['digit'], label: 'a digit', isMet: (password) => /\p{Nd}/u.test(password) },
  { rules: ['symbol'], label: 'a symbol, such as ! or -', isMet: (password) => /[^\p{L}\p{Nd}]/u.test(password) },
];
