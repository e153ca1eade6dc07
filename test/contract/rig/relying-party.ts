import * as client from 'openid-client';
import { expect } from 'vitest';
import { clientAddress } from '../../rig/servers/address.ts';
import { callerOf } from './callers.ts';
import { administrator, type Scenario } from './scenario.ts';

/** A third-party application, on openid-client, which knows only the metadata of the service. */

export const CALLBACK = 'https://shop.example.com/callback';

/** A browser without a session cookie on navigations: it arrives from another site. */
export class Visitor {
  readonly address = clientAddress();
  cookie: string | undefined;

  /** The browser cookie of a call. */
  get browser(): string | undefined {
    return this.cookie?.split('=')[1];
  }

  async go(url: string | URL): Promise<Response> {
    const headers = {
      'x-forwarded-for': this.address,
      accept: 'text/html',
      ...(this.cookie && { cookie: this.cookie }),
    };
    const response = await fetch(url, { redirect: 'manual', headers });
    const set = response.headers.getSetCookie().map((line) => line.split(';')[0] ?? '');
    this.cookie = set.find((pair) => /^(?:__Host-)?auth_browser=/.test(pair)) ?? this.cookie;
    return response;
  }
}

/** The error of a refused request to an endpoint. */
export const refused = async (request: Promise<unknown>) => {
  const error = await request.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof client.WWWAuthenticateChallengeError) return error.cause[0]?.parameters['error'];
  return error instanceof client.ResponseBodyError ? error.error : error;
};

interface Asked {
  /** Parameters of the authorization request, besides those of every one. */
  parameters?: Record<string, string>;
  visitor?: Visitor;
  verifier?: string;
  /** The answer to the question for consent. */
  allow?: boolean;
}

export type RelyingParty = Awaited<ReturnType<typeof relyingParty>>;

/** A registered application; `auth` is how it identifies itself without a secret. */
export async function relyingParty(scenario: Scenario, given: object = {}, auth = client.None()) {
  const { stack } = scenario;
  const call = callerOf('rest', stack.url);
  const { session: adminSession } = await administrator({ ...scenario, call });
  const fields = {
    name: 'Shop',
    kind: 'web',
    redirectUris: [CALLBACK],
    scopes: ['openid', 'profile', 'email', 'offline_access'],
  };
  const created = await call('applications.create', { ...fields, ...given }, { session: adminSession });
  expect(created).toMatchObject({ status: 201 });
  const { application, secret } = created.data;
  /** The same path at this or another instance: APP_URL may be a name that leads nowhere. */
  const at = (url: string | URL, base = stack.url) => {
    const { pathname, search } = new URL(url, base);
    return new URL(pathname + search, base);
  };
  const configured = (base = stack.url) =>
    client.discovery(
      new URL(stack.appUrl),
      application.id,
      { id_token_signed_response_alg: 'ES256', ...(secret && { client_secret: secret }) },
      secret ? client.ClientSecretBasic(secret) : auth,
      {
        execute: [client.allowInsecureRequests],
        [client.customFetch]: (url, options) => fetch(at(url, base), options as RequestInit),
      },
    );
  const config = await configured();

  /** Sends the browser to an address of the service; resolves to the id of the request, or to where else it is sent. */
  const visit = async (visitor: Visitor, address: string | URL) => {
    const response = await visitor.go(at(address));
    const location = response.headers.get('location') ?? '';
    const url = URL.canParse(location, stack.appUrl) ? new URL(location, stack.appUrl) : undefined;
    return {
      status: response.status,
      url,
      id: url?.pathname === '/authorize' ? url.searchParams.get('id') : undefined,
      response,
    };
  };

  const begin = (visitor: Visitor, parameters: Record<string, string>) =>
    visit(visitor, client.buildAuthorizationUrl(config, parameters));

  /** The user with this session answers a request on the account page, and the browser goes on to the callback. */
  const answer = async (session: string | undefined, id: string, visitor: Visitor, allow = true) => {
    const options = { session, browser: visitor.browser };
    const first = await call('authorizations.proceed', { id }, options);
    const { step, userId } = first.data;
    const last = step === 'consent' ? await call('authorizations.proceed', { id, allow, userId }, options) : first;
    const steps = [step, last.data.step];
    if (last.data.step !== 'continue') return { steps, callback: undefined };
    const response = await visitor.go(at(last.data.location));
    expect(response.status).toBe(303);
    return { steps, callback: new URL(response.headers.get('location') ?? '') };
  };

  const party = {
    id: application.id as string,
    secret: secret as string | undefined,
    config,
    /** openid-client at another instance. */
    configured,
    at,
    visit,
    begin,
    answer,
    asAdministrator: (procedure: string, input: object = {}) =>
      call(procedure, { id: application.id, ...input }, { session: adminSession }),

    /** The parameters of every request. */
    async parameters(verifier: string, extra: Record<string, string> = {}) {
      return {
        redirect_uri: application.redirectUris[0],
        scope: 'openid profile email',
        state: 'the-state',
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...extra,
      } as Record<string, string>;
    },

    /** From the application to its callback, through the account page of a user with this session. */
    async authorize(
      session: string | undefined,
      {
        parameters = {},
        visitor = new Visitor(),
        allow = true,
        verifier = client.randomPKCECodeVerifier(),
      }: Asked = {},
    ) {
      const { id } = await begin(visitor, await party.parameters(verifier, parameters));
      expect(id).toBeTruthy();
      return { ...(await answer(session, id ?? '', visitor, allow)), verifier, visitor };
    },

    /** Exchanges the code of a callback. */
    redeem: (callback: URL, verifier: string, other = config, parameters: Record<string, string> = {}) =>
      client.authorizationCodeGrant(
        other,
        callback,
        { pkceCodeVerifier: verifier, expectedState: 'the-state' },
        parameters,
      ),

    /** The tokens of a user with this session. */
    async logIn(session: string, parameters: Record<string, string> = {}) {
      const { callback, verifier } = await party.authorize(session, { parameters });
      expect(callback?.searchParams.get('code')).toBeTruthy();
      return party.redeem(callback as URL, verifier);
    },
  };
  return party;
}

export const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';

/** A registered application on a device without a browser. */
export async function deviceParty(scenario: Scenario, given: object = {}) {
  const party = await relyingParty(scenario, { kind: 'device', redirectUris: [], ...given });
  const device = {
    ...party,
    beginInBrowser: party.begin,

    /** Asks for codes. */
    begin: (parameters: Record<string, string> = {}) =>
      client.initiateDeviceAuthorization(party.config, { scope: 'openid profile email', ...parameters }),

    /** The user of the session answers on the account page. */
    async answer(
      { user_code: userCode }: Pick<Codes, 'user_code'>,
      { session, id: userId }: { session: string; id: string },
      allow = true,
    ) {
      const send = (input = {}) => scenario.call('authorizations.device', { userCode, ...input }, { session });
      if (allow) expect((await send()).data.step).toBe('consent');
      const reply = await send({ allow, userId });
      expect(reply).toMatchObject({ code: undefined, data: { step: 'done' } });
    },

    /** Polls once. */
    redeem: ({ device_code: code }: Codes, config = party.config) =>
      client.genericGrantRequest(config, DEVICE, { device_code: code }),

    /** The tokens that the user of the session allows. */
    async allowed(user: { session: string; id: string }, parameters: Record<string, string> = {}) {
      const codes = await device.begin(parameters);
      await device.answer(codes, user);
      return device.redeem(codes);
    },
  };
  return device;
}

type Codes = client.DeviceAuthorizationResponse;
