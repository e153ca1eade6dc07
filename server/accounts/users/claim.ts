import type { Caller } from '../../activity/caller.ts';
import type { NewEvent } from '../../activity/index.ts';
import type { AllTables } from '../../parts/database/contract.ts';
import { releaseFields, storedFields } from './custom-fields.ts';
import { replaceNameWords } from './name-words.ts';
import { changedIn, type LockedUser } from './users.ts';

interface Needs {
  /** Inserts an event in the caller's transaction. */
  record(tables: AllTables, user: LockedUser, event: NewEvent, caller: Caller): Promise<void>;
}

interface Claim {
  tables: AllTables;
  user: LockedUser;
  name: string;
  caller: Caller;
}

/** Gives a never verified account to the owner of its inbox (`User.claim`), and records which fields that changed. */
export async function claimUser({ record }: Needs, { tables, user, name, caller }: Claim): Promise<void> {
  const { profile: former, language, fields: own } = user;
  await releaseFields(tables, user);
  user.claim(name);
  await replaceNameWords(tables, user);
  const fields = [
    ...changedIn(user.profile, former),
    ...(language ? ['language'] : []),
    ...Object.keys(storedFields(own)).map((field) => `fields.${field}`),
  ];
  if (fields.length === 0) return;
  await record(tables, user, { kind: 'profile-changed', details: { fields: fields.join(', ') } }, caller);
}
