import { type IconName, shapes } from './lucide.ts';

export type { IconName } from './lucide.ts';

const loaded: Partial<Record<IconName, string>> = shapes;

/** Pages for logged-in users have more icons than the login, which does not load them. */
export async function loadAccountIcons(): Promise<void> {
  const { accountShapes } = await import('./lucide-account.ts');
  Object.assign(loaded, accountShapes);
}

/** A picture beside words that say the same: screen readers skip it. */
export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
    <path d={loaded[name]} />
  </svg>
);
