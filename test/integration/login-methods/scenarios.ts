import { ServiceError } from '../../../server/errors.ts';
import { acts, comesIn, logIn, logins, register, strangersOwn, tokenFor, userWith, verify } from './acts.ts';
import type { Act } from './explore.ts';
import { OWNERS, passwords, type World } from './world.ts';

interface Scenario {
  begin(world: World): Promise<unknown>;
  acts: string[];
}

const preHijacking = [
  'the stranger registers the owner’s address',
  'the stranger logs in by password',
  'the stranger logs in through a provider that does not vouch for the owner’s address',
  'the stranger logs in by passkey',
  'a sibling host plants a state cookie: the stranger’s flow ends in the owner’s browser',
  'the owner registers',
  'the owner opens the link of the verification mail',
  'the owner logs in through a provider that vouches',
  'the owner logs in by password',
  'the owner logs in by a mailed code',
  'the owner resets the password',
];
const inSession = [
  'the stranger adds a passkey',
  'the stranger links an identity',
  'the stranger begins to link an identity',
  'the stranger finishes linking the identity',
  'the stranger sets a password',
];
const takeover = [
  'the stranger logs in by a known password of the owner',
  'the stranger logs in by password',
  'the stranger logs in by passkey',
  'the stranger adds a passkey',
  'the stranger links an identity',
  'the stranger sets a password',
  'the stranger adds an authenticator app',
  'the stranger removes what the owner added',
  'the stranger changes the address to the own one',
  'the owner logs in by password',
  'the owner adds a passkey',
  'the owner resets the password',
  'the owner opens “this was not me” of the mail about a login, and resets',
  'the owner undoes the change of address, and resets',
  'five days pass',
];

/** What the stranger begins with, and the acts that matter then. */
export const scenarios: Record<string, Scenario> = {
  'before the owner comes': {
    begin: async () => undefined,
    acts: [
      ...preHijacking,
      ...inSession,
      'the owner adds a passkey',
      'the owner opens “this was not me” of the verification mail',
    ],
  },
  'with an account of the own address': {
    begin: (world) => world.throughProvider('stranger', strangersOwn),
    acts: [
      'the stranger logs in through a provider by the own address',
      'the stranger logs in through a provider that does not vouch for the owner’s address',
      'the stranger adds a passkey',
      'the stranger sets a password',
      'the stranger asks to change the address to the owner’s',
      'the owner opens the link of the new address',
      'the owner opens the link of the new address, where a sibling host has planted the stranger’s session',
      'the owner registers',
      'the owner opens the link of the verification mail',
      'the owner logs in through a provider that vouches',
      'the owner resets the password',
      'the stranger logs in by passkey',
      'the stranger logs in by password',
    ],
  },
  'with the mailbox, once': {
    begin: async () => undefined,
    acts: [
      'the stranger registers the owner’s address',
      'the stranger logs in by password',
      'the stranger adds a passkey',
      'the stranger links an identity',
      'the stranger logs in by passkey',
      'the stranger reads the owner’s mailbox, once',
      'the stranger resets by the read link',
      'the stranger verifies by the read link',
      'the stranger logs in by a code from the owner’s mailbox, once',
      'the owner registers',
      'the owner opens the link of the verification mail',
      'the owner logs in by password',
      'the owner resets the password',
      'the owner opens “this was not me” of the mail about a login, and resets',
    ],
  },
  'with the owner’s password': { begin: robbed, acts: takeover },
  'with a copy of the owner’s session': { begin: hijacked, acts: takeover },
};

/** Rejects for a misspelt act. */
export const actsOf = ({ acts: names }: Scenario): Act<World>[] =>
  names.map((name) => {
    const act = acts.find((each) => each.name === name);
    if (!act) throw new Error(`there is no act “${name}”`);
    return act;
  });

/** What has gone wrong after the owner's reset; leaves the world as it is. */
export async function problemIn(world: World): Promise<string | undefined> {
  if (!world.has.secured) return undefined;
  const { state } = world.snapshot();
  const account = userWith(world, OWNERS)?.['id'];
  const isIn = async () => {
    const session = await world.accounts.sessions.validate(world.has.sessions.stranger ?? '');
    return session !== null && session.user.id === account;
  };
  if (await isIn()) return 'the stranger has a session of the owner’s account';
  const hasSomething =
    world.whosePassword(userWith(world, OWNERS)?.['password_hash']) === 'stranger' ||
    world.query(
      "select 1 from identities where user_id = ?1 and subject = 'stranger' union select 1 from passkeys where user_id = ?1 and name = 'stranger'",
      account ?? null,
    ).length > 0;
  // Otherwise the next step of the search tries the same.
  for (const { name, isPossible, perform } of hasSomething ? logins : []) {
    if (!isPossible(world)) continue;
    await perform(world).catch(unlessRefused);
    const hasEntered = await isIn();
    await world.restore(state);
    if (hasEntered) return `${name}: it opens the owner’s account`;
  }
  const result = await logIn(world, 'owner', OWNERS, passwords.owner).catch((error) => unlessRefused(error));
  await world.restore(state);
  return result === 'logged-in' ? undefined : `the owner does not get in: ${result}`;
}

export const isRefusal = (error: unknown): boolean =>
  error instanceof ServiceError && error.code !== 'SERVICE_UNAVAILABLE' && error.code !== 'RATE_LIMITED';

function unlessRefused(error: unknown): string {
  if (isRefusal(error)) return (error as ServiceError).code;
  throw error;
}

/** An account of the owner, whose password the stranger knows. */
export async function robbed(world: World): Promise<void> {
  await register(world, 'owner', OWNERS);
  await verify(world, 'owner', tokenFor(world, 'verify-email'));
  world.has.knowsPassword = true;
}

/** An account of the owner, whose session the stranger has a copy of. */
export async function hijacked(world: World): Promise<void> {
  await register(world, 'owner', OWNERS);
  await verify(world, 'owner', tokenFor(world, 'verify-email'));
  await logIn(world, 'owner', OWNERS, passwords.owner);
  Object.assign(world.has.sessions, { stranger: world.has.sessions.owner });
  comesIn(world, { isTold: false });
}
