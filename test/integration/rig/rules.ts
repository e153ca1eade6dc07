import { User } from '../../../entities/index.ts';
import type { Context } from '../../../routers/context.ts';
import { withoutHttp } from '../../../routers/in-process.ts';
import { createCaller } from '../../../routers/index.ts';
import { createRules, openParts } from '../../../server/assemble.ts';
import { type Config, parseConfig } from '../../../server/config/index.ts';
import { newToken } from '../../../server/lib/random-token.ts';
import type { IdentityProvider, ProvidedIdentity } from '../../../server/parts/identity-provider/contract.ts';
import { createSecrets } from '../../../server/secrets.ts';
import type { LoginMethod, ProviderName } from '../../../server/shared/method-names.ts';
import { createLog } from '../../../server/telemetry/log.ts';
import { readTexts } from '../../../server/texts/index.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

export const requester = {
  actor: 'user' as const,
  clientAddress: '192.0.2.1',
  userAgent: '',
  requestId: 'r',
  language: () => undefined,
  formerToken: undefined,
  deviceCookie: undefined,
};

/** A provider that states what the code of the callback contains. */
export const statingProvider = (properties: Partial<IdentityProvider> = {}): IdentityProvider => ({
  provesLogin: false,
  isTrustedForMfa: false,
  begin: async ({ state, redirectUri }) => ({ url: state, secrets: { redirectUri, nonce: '', codeVerifier: '' } }),
  finish: async ({ code = '' }) => JSON.parse(code) as ProvidedIdentity,
  ...properties,
});

/**
 * The rules of the service on embedded parts, without a server and without workers. `create` makes them anew, on the
 * same parts, perhaps with another configuration: for each test, because a mutation run changes no function that was made before the test.
 */
export async function openRules(
  name: string,
  {
    env = {},
    providers = {},
  }: { env?: Record<string, string>; providers?: Readonly<Record<string, IdentityProvider>> } = {},
) {
  const config = parseConfig({ DATA_DIR: temporaryDirectory(name), LOG_LEVEL: 'silent', ...env });
  const log = await createLog(config);
  const secrets = createSecrets(['x'.repeat(32)]);
  const parts = await openParts(config, { secrets, log });
  await parts.database.migrate();
  const identityProviders = new Map(Object.entries(providers) as [ProviderName, IdentityProvider][]);
  const setting = { identityProviders, secrets, texts: readTexts(undefined), log };

  /** A verified user, changed before it is stored. */
  const insertUser = async (label: string, change: (user: User) => void = () => undefined): Promise<User> => {
    const user = User.register({ email: `${label}@example.test`, name: label, passwordHash: null });
    user.verifyEmail();
    change(user);
    await parts.database.transaction(async (em) => {
      await em.insert(user);
    });
    return user;
  };

  return {
    create(changes: Partial<Config> = {}) {
      const changed = { ...config, ...changes };
      return { config: changed, parts, ...setting, ...parts, ...createRules(changed, parts, setting), insertUser };
    },
    close: parts.close,
  };
}

export type Opened = Awaited<ReturnType<typeof openRules>>;
export type OpenedRules = ReturnType<Opened['create']>;

/** The procedures for one browser. `changed` has the cookies that answers have set, and the status. */
export function procedures({ database, ...rules }: OpenedRules, given: Partial<Context> = {}) {
  const changed: Record<string, unknown> = {};
  const set = (name: string) => (value: unknown) => {
    changed[name] = value;
  };
  const browser = newToken();
  const caller = createCaller({
    ...withoutHttp,
    ...rules,
    service: undefined,
    clientAddress: () => requester.clientAddress,
    endOfLogin: () => '/end-of-login',
    ownUrl: () => rules.config.appUrl,
    returnAddress: (asked) => (asked.startsWith('/') ? asked : undefined),
    browser: () => browser,
    cookies: {
      setSession: set('session'),
      forgetSession: () => set('session')('forgotten'),
      clearSession: () => set('session')('cleared'),
      setState: (provider, state) => set(`state of ${provider}`)(state),
      clearState: (provider) => set(`state of ${provider}`)('cleared'),
      setBrowser: set('browser'),
      setDevice: set('device'),
      setPending: set('pending'),
      clearPending: () => set('pending')('cleared'),
    },
    setLogUser: set('logged user'),
    setLogService: set('logged service'),
    setStatus: set('status'),
    pingDatabase: () => database.ping(),
    ...given,
  });
  return { caller, changed, browser };
}

/** The token of a new session of the user. */
export async function logIn({ accounts }: OpenedRules, { id }: User, method: LoginMethod = 'password') {
  const account = await accounts.users.find(id);
  if (!account) throw new Error('the user cannot log in');
  return (await accounts.sessions.openSession(account, { method }, requester)).token;
}
