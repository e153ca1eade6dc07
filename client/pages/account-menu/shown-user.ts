import type { Profile } from '../api.ts';
import { keepDraft, readDraft, shownUser } from '../session/draft.ts';

/** What the menu shows of the user. */
export interface ShownUser {
  name: string;
  email: string;
  avatar: string;
  isAdministrator: boolean;
}

let role = readDraft(shownUser).role ?? '';
/** Of the answer with the profile. */
export const noteRole = (found: 'admin' | undefined): void => {
  role = found ?? '';
};

export function keepShownUser({ name, email, avatar }: Profile): ShownUser {
  keepDraft(shownUser, { name, email, avatar, role });
  return { name, email, avatar, isAdministrator: role === 'admin' };
}

export function keptUser(): ShownUser | undefined {
  const { name, email, avatar = '' } = readDraft(shownUser);
  return name && email ? { name, email, avatar, isAdministrator: role === 'admin' } : undefined;
}
