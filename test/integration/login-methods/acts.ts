import type { AssertionResponse } from '../../../server/accounts/credentials/index.ts';
import type { TokenPurpose } from '../../../server/accounts/mail/kinds.ts';
import { ServiceError } from '../../../server/errors.ts';
import { codeOf } from '../../contract/rig/totp-scenario.ts';
import type { Act } from './explore.ts';
import { browsers, OWNERS, type Person, passwords, STRANGERS, type World } from './world.ts';

/** What each identity of the hostile provider states. The owner's is at an honest one: it vouches for the address. */
const strangers = { subject: 'stranger', email: OWNERS, emailVerified: false };
export const strangersOwn = { subject: 'stranger', email: STRANGERS, emailVerified: true };
const owners = { subject: 'owner', email: OWNERS, emailVerified: true };

const refuse = (why: string): never => {
  throw new ServiceError('FORBIDDEN', { message: why });
};

export const userWith = (world: World, email: string) => world.query('select * from users where email = ?', email)[0];

/** The usable token of a purpose, of the account with this address. */
export const tokenFor = (world: World, purpose: TokenPurpose, email = OWNERS) =>
  world.query(
    `select token.id from one_time_tokens token join users on users.id = user_id where email = ? and purpose = ?`,
    email,
    purpose,
  )[0]?.['id'];

/** The change of address that an address was mailed a link for. */
const changeFor = (world: World, column: 'email' | 'former', confirmed: boolean, email = OWNERS) =>
  world.query(
    `select id from email_changes where ${column} = ? and confirmed_at is ${confirmed ? 'not' : ''} null order by created_at limit 1`,
    email,
  )[0]?.['id'];

/** The first time counts; an untold one counts once for all. */
export function comesIn({ has }: World, { isTold }: { isTold: boolean }) {
  has.came = { on: has.came?.on ?? has.days, isTold: isTold && has.came?.isTold !== false };
}

export async function register(world: World, person: Person, email: string) {
  const { caller } = world;
  await world.accounts.lifecycle.registration.register(
    { name: 'Somebody', email, password: passwords[person], acceptTerms: true },
    { caller: caller(person), browser: browsers[person], returnTo: undefined },
  );
  await world.deliver();
}

export async function verify(world: World, person: Person, id: unknown) {
  const { deviceCookie } = await world.accounts.lifecycle.verification.verifyEmail(world.token('verify-email', id), {
    request: world.device(person),
    browser: browsers[person],
  });
  if (deviceCookie) world.has.devices[person] = deviceCookie;
}

export async function logIn(world: World, person: Person, email: string, password: string) {
  const outcome = await world.accounts.login.password.logIn({ email, password }, world.login(person));
  if (outcome.result === 'logged-in') world.opened(person, outcome.login);
  await world.deliver();
  return outcome.result;
}

async function logInByPasskey(world: World, person: Person) {
  const { passkey } = world.accounts.login;
  const { clientAddress } = world.caller(person);
  const options = await passkey.beginPasskey({ purpose: 'login', browser: browsers[person] }, clientAddress);
  const user = world.query('select user_id from passkeys where name = ?', person)[0]?.['user_id'];
  const userHandle = Buffer.from(String(user)).toString('base64url');
  const response = world.authenticators[person].assert({ ...options, rpId: options.rpId ?? '' }, { userHandle });
  const outcome = await passkey.logIn(response as AssertionResponse, browsers[person], world.login(person));
  if (outcome.result === 'logged-in') world.opened(person, outcome.login);
  await world.deliver();
}

/** Asks for a code, reads it in the owner's mailbox, and enters it. */
async function logInByCode(world: World, person: Person) {
  const { emailCode } = world.accounts.lifecycle;
  const request = { ...world.login(person), browser: browsers[person] };
  const token = await emailCode?.begin(OWNERS, undefined, request);
  await world.admitMails();
  const outcome = await emailCode?.finish(token, world.mailedCode(), request);
  if (outcome?.result === 'logged-in') world.opened(person, outcome.login);
  await world.deliver();
}

async function reset(world: World, person: Person, id: unknown) {
  const { deviceCookie } = await world.accounts.lifecycle.passwordReset.resetPassword(
    { token: world.token('reset-password', id), email: OWNERS },
    passwords[person],
    world.device(person),
  );
  world.has.devices[person] = deviceCookie;
  if (person === 'owner') world.has.knowsPassword = false;
  await world.deliver();
}

async function askForReset(world: World, person: Person) {
  await world.accounts.lifecycle.passwordReset.forgotPassword(OWNERS, undefined, world.caller(person));
  await world.deliver();
}

async function addPasskey(world: World, person: Person) {
  const { session } = await world.session(world.has.sessions[person], { isRecent: true });
  const { passkeys } = world.accounts.credentials;
  const registration = { mode: 'registration', browser: browsers[person] } as const;
  const options = await passkeys.beginPasskeyRegistration(session, registration, world.caller(person));
  const response = world.authenticators[person].register({ ...options, rp: { id: options.rp.id ?? '' } });
  await passkeys.finishPasskeyRegistration(
    session,
    { ...registration, response: { ...response, type: 'public-key' }, name: person },
    world.caller(person),
  );
  await world.deliver();
}

async function link(world: World, person: Person, identity: typeof owners) {
  const { session } = await world.session(world.has.sessions[person], { isRecent: true });
  const result = await world.endFlow(await world.beginFlow(person, 'link', session), identity, person);
  if (result !== 'linked') refuse(result);
  await world.deliver();
}

async function setPassword(world: World, person: Person) {
  const own = await world.session(world.has.sessions[person]);
  const { password_hash } = userWith(world, own.session.user.email) ?? {};
  const whose = world.whosePassword(password_hash);
  if (whose === person) refuse('nothing changes');
  const knows = person === 'stranger' && whose === 'owner' && world.has.knowsPassword;
  const currentPassword = knows ? passwords.owner : undefined;
  const changed = await world.accounts.lifecycle.passwordChange.changePassword(
    own,
    { currentPassword, newPassword: passwords[person] },
    world.device(person),
  );
  world.has.sessions[person] = changed.token;
  if (changed.deviceCookie) world.has.devices[person] = changed.deviceCookie;
  await world.deliver();
}

async function askForAddress(world: World, person: Person, email: string) {
  const { session } = await world.session(world.has.sessions[person], { isRecent: true });
  await world.accounts.lifecycle.emailChange.changeEmail(session, email, {
    caller: world.caller(person),
    browser: browsers[person],
  });
  await world.deliver();
}

async function confirmAddress(
  world: World,
  { person, browser = browsers[person] }: { person: Person; browser?: string },
  id: unknown,
  token = world.has.sessions[person],
) {
  const { session } = await world.session(token);
  await world.accounts.lifecycle.emailChange.confirmEmail(session, world.token('confirm-email', id), {
    caller: world.caller(person),
    browser,
  });
  await world.deliver();
}

/** Removes the other person's ways to log in, as far as the session may. */
async function removeOthers(world: World, person: Person) {
  const { session } = await world.session(world.has.sessions[person], { isRecent: true });
  const other = person === 'owner' ? 'stranger' : 'owner';
  const { id } = session.user;
  const identity = world.query('select id from identities where user_id = ? and subject = ?', id, other)[0];
  const passkey = world.query('select id from passkeys where user_id = ? and name = ?', id, other)[0];
  if (!identity && !passkey) refuse('there are none');
  if (identity) await world.accounts.providers.links.unlink(session, String(identity['id']), world.caller(person));
  if (passkey)
    await world.accounts.credentials.passkeys.removePasskey(session, String(passkey['id']), world.caller(person));
  await world.deliver();
}

async function addApp(world: World, person: Person) {
  const own = await world.session(world.has.sessions[person], { isRecent: true });
  const { totp } = world.accounts.credentials;
  const { secret } = await totp.beginTotp(own.session);
  const { login } = await totp.enableTotp(own, codeOf(secret), world.device(person));
  world.has.sessions[person] = login.token;
  if (login.deviceCookie) world.has.devices[person] = login.deviceCookie;
  await world.deliver();
}

/** The life of the links that undo, and how far they and a reset look back, by interface.md and docs/design. */
const WEEK = 7;
const DAY_MS = 24 * 60 * 60_000;

/** Whether a reset is the answer: nobody came in, or a mailed login of the last week was theirs. */
const isAnsweredByReset = ({ has: { came, days } }: World) =>
  came === undefined || (came.isTold && days - came.on <= WEEK);

/** Whether the link is: a mail told of the stranger, and the last mail came at most a week after. */
const isAnsweredByLink = ({ has: { came, toldOn } }: World) => {
  const last = toldOn.at(-1) ?? 0;
  const days = came === undefined ? [] : [came.on, ...toldOn.filter((day) => day > came.on)];
  return came === undefined || (last - came.on <= WEEK && days.every((day, i) => day - (days[i - 1] ?? day) <= WEEK));
};

/** Whether the undo is: the stranger came at most a week before asking for the other address. */
const isAnsweredByUndo = ({ has: { came, askedOn } }: World) => came === undefined || (askedOn ?? 0) - came.on <= WEEK;

/** “This was not me”, and then the link to a new password that the answer mails. */
async function disownAndReset(world: World) {
  world.has.secured = isAnsweredByLink(world);
  const id = tokenFor(world, 'new-device');
  if (world.weakness === 'looks back a week from the click')
    await world.change('update one_time_tokens set covers_from = ?', Date.now() - WEEK * DAY_MS);
  await world.accounts.lifecycle.notMe.disown(world.token('new-device', id), world.caller('owner'));
  await world.deliver();
  await reset(world, 'owner', tokenFor(world, 'reset-password'));
}

async function undoAndReset(world: World) {
  world.has.secured = isAnsweredByUndo(world);
  const id = changeFor(world, 'former', true);
  // The undo looks back a week from there.
  if (world.weakness === 'looks back a week from the click')
    await world.change('update email_changes set created_at = ?', Date.now());
  await world.accounts.lifecycle.emailChange.undoEmailChange(world.token('email-changed', id), world.caller('owner'));
  await askForReset(world, 'owner');
  await reset(world, 'owner', tokenFor(world, 'reset-password'));
}

const hasSession = (person: Person) => (world: World) => world.has.sessions[person] !== undefined;
const isOpen = ({ has }: World) => !has.secured;
const both =
  (...rules: ((world: World) => boolean)[]) =>
  (world: World) =>
    rules.every((rule) => rule(world));
const always = () => true;
const ownersAccount = (world: World) => userWith(world, OWNERS) !== undefined;

/** The stranger's logins. */
export const logins: Act<World>[] = [
  {
    name: 'the stranger logs in by password',
    isPossible: ownersAccount,
    perform: (world) => logIn(world, 'stranger', OWNERS, passwords.stranger),
  },
  {
    name: 'the stranger logs in by a known password of the owner',
    isPossible: ({ has }) => has.knowsPassword && !has.secured,
    async perform(world) {
      await logIn(world, 'stranger', OWNERS, passwords.owner);
      comesIn(world, { isTold: true });
    },
  },
  {
    name: 'the stranger logs in through a provider that does not vouch for the owner’s address',
    isPossible: always,
    perform: async (world) => {
      await world.throughProvider('stranger', strangers);
      await world.deliver();
    },
  },
  {
    name: 'the stranger logs in through a provider by the own address',
    isPossible: always,
    perform: async (world) => {
      await world.throughProvider('stranger', strangersOwn);
      await world.deliver();
    },
  },
  {
    name: 'the stranger logs in by passkey',
    isPossible: (world) => world.query("select id from passkeys where name = 'stranger'").length > 0,
    perform: (world) => logInByPasskey(world, 'stranger'),
  },
];

export const acts: Act<World>[] = [
  ...logins,
  {
    name: 'the stranger registers the owner’s address',
    isPossible: both(isOpen, (world) => !ownersAccount(world)),
    perform: (world) => register(world, 'stranger', OWNERS),
  },
  {
    name: 'the stranger adds a passkey',
    isPossible: hasSession('stranger'),
    perform: (world) => addPasskey(world, 'stranger'),
  },
  {
    name: 'the stranger links an identity',
    isPossible: hasSession('stranger'),
    perform: (world) => link(world, 'stranger', strangers),
  },
  {
    name: 'the stranger begins to link an identity',
    isPossible: both(hasSession('stranger'), ({ has }) => has.flow === undefined),
    async perform(world) {
      const { session } = await world.session(world.has.sessions.stranger, { isRecent: true });
      world.has.flow = await world.beginFlow('stranger', 'link', session);
    },
  },
  {
    name: 'the stranger finishes linking the identity',
    isPossible: ({ has }) => has.flow !== undefined,
    async perform(world) {
      const result = await world.endFlow(world.has.flow ?? '', strangers, 'stranger');
      world.has.flow = undefined;
      if (result !== 'linked') refuse(result);
      await world.deliver();
    },
  },
  {
    name: 'the stranger sets a password',
    isPossible: hasSession('stranger'),
    perform: (world) => setPassword(world, 'stranger'),
  },
  {
    name: 'the stranger adds an authenticator app',
    isPossible: hasSession('stranger'),
    perform: (world) => addApp(world, 'stranger'),
  },
  {
    name: 'the stranger removes what the owner added',
    isPossible: hasSession('stranger'),
    perform: (world) => removeOthers(world, 'stranger'),
  },
  {
    name: 'the stranger changes the address to the own one',
    isPossible: hasSession('stranger'),
    async perform(world) {
      await askForAddress(world, 'stranger', STRANGERS);
      world.has.askedOn ??= world.has.days;
      await confirmAddress(world, { person: 'stranger' }, changeFor(world, 'email', false, STRANGERS));
    },
  },
  {
    name: 'the stranger asks to change the address to the owner’s',
    isPossible: hasSession('stranger'),
    perform: (world) => askForAddress(world, 'stranger', OWNERS),
  },
  {
    name: 'the stranger reads the owner’s mailbox, once',
    isPossible: both(isOpen, ({ has }) => !has.hasRead),
    async perform(world) {
      await askForReset(world, 'stranger');
      world.has.hasRead = true;
      for (const purpose of ['verify-email', 'reset-password'] as const) {
        const id = tokenFor(world, purpose);
        if (id) world.has.read[purpose] = String(id);
      }
      const change = changeFor(world, 'email', false);
      if (change) world.has.read['confirm-email'] = String(change);
    },
  },
  {
    name: 'the stranger logs in by a code from the owner’s mailbox, once',
    isPossible: both(isOpen, ({ has }) => !has.hasRead),
    async perform(world) {
      world.has.hasRead = true;
      await logInByCode(world, 'stranger');
      comesIn(world, { isTold: false });
    },
  },
  {
    name: 'the stranger resets by the read link',
    isPossible: ({ has }) => has.read['reset-password'] !== undefined,
    async perform(world) {
      await reset(world, 'stranger', world.has.read['reset-password']);
      comesIn(world, { isTold: false });
    },
  },
  {
    name: 'the stranger verifies by the read link',
    isPossible: ({ has }) => has.read['verify-email'] !== undefined,
    async perform(world) {
      await verify(world, 'stranger', world.has.read['verify-email']);
      comesIn(world, { isTold: false });
    },
  },
  {
    name: 'the stranger confirms the address by the read link',
    isPossible: ({ has }) => has.read['confirm-email'] !== undefined,
    async perform(world) {
      await confirmAddress(world, { person: 'stranger' }, world.has.read['confirm-email']);
      comesIn(world, { isTold: false });
    },
  },
  {
    name: 'the owner opens the link of the new address, where a sibling host has planted the stranger’s session',
    isPossible: both(hasSession('stranger'), (world) => changeFor(world, 'email', false) !== undefined),
    async perform(world) {
      const id = changeFor(world, 'email', false);
      const browser = world.weakness === 'planted browser cookie' ? browsers.stranger : browsers.owner;
      await confirmAddress(world, { person: 'owner', browser }, id, world.has.sessions.stranger);
    },
  },
  {
    name: 'a sibling host plants a state cookie: the stranger’s flow ends in the owner’s browser',
    isPossible: isOpen,
    async perform(world) {
      const beginsAs = world.weakness === 'planted browser cookie' ? 'owner' : 'stranger';
      await world.throughProvider('stranger', strangers, { beginsAs, endedBy: 'owner' });
      await world.deliver();
    },
  },
  {
    name: 'the owner registers',
    isPossible: both(isOpen, (world) => !ownersAccount(world)),
    perform: (world) => register(world, 'owner', OWNERS),
  },
  {
    name: 'the owner opens the link of the verification mail',
    isPossible: (world) => tokenFor(world, 'verify-email') !== undefined,
    perform: (world) => verify(world, 'owner', tokenFor(world, 'verify-email')),
  },
  {
    name: 'the owner opens the link of the new address',
    isPossible: (world) => changeFor(world, 'email', false) !== undefined,
    perform: (world) => confirmAddress(world, { person: 'owner' }, changeFor(world, 'email', false)),
  },
  {
    name: 'the owner logs in through a provider that vouches',
    isPossible: isOpen,
    async perform(world) {
      await world.throughProvider('owner', owners);
      await world.deliver();
    },
  },
  {
    name: 'the owner logs in by a mailed code',
    isPossible: isOpen,
    perform: (world) => logInByCode(world, 'owner'),
  },
  {
    name: 'the owner logs in by password',
    isPossible: both(isOpen, ownersAccount),
    perform: (world) => logIn(world, 'owner', OWNERS, passwords.owner),
  },
  {
    name: 'the owner adds a passkey',
    isPossible: both(isOpen, hasSession('owner')),
    perform: (world) => addPasskey(world, 'owner'),
  },
  {
    name: 'the owner links an identity',
    isPossible: both(isOpen, hasSession('owner')),
    perform: (world) => link(world, 'owner', owners),
  },
  {
    name: 'the owner sets a password',
    isPossible: both(isOpen, hasSession('owner')),
    perform: (world) => setPassword(world, 'owner'),
  },
  {
    name: 'the owner opens “this was not me” of the verification mail',
    isPossible: both(isOpen, (world) => tokenFor(world, 'verify-email') !== undefined),
    async perform(world) {
      await world.accounts.lifecycle.notMe.disown(
        world.token('verify-email', tokenFor(world, 'verify-email')),
        world.caller('owner'),
      );
      await world.deliver();
    },
  },
  {
    name: 'the owner resets the password',
    isPossible: both(isOpen, ownersAccount),
    async perform(world) {
      world.has.secured = isAnsweredByReset(world);
      await askForReset(world, 'owner');
      await reset(world, 'owner', tokenFor(world, 'reset-password'));
    },
  },
  {
    name: 'the owner opens “this was not me” of the mail about a login, and resets',
    isPossible: both(isOpen, (world) => tokenFor(world, 'new-device') !== undefined),
    perform: disownAndReset,
  },
  {
    name: 'the owner undoes the change of address, and resets',
    isPossible: both(isOpen, (world) => changeFor(world, 'former', true) !== undefined),
    perform: undoAndReset,
  },
  {
    name: 'five days pass',
    isPossible: both(isOpen, ({ has }) => has.days < 10),
    perform: (world) => world.pass(5),
  },
];
