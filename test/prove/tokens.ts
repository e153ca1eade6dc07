import { randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { relyingParty } from '../contract/rig/relying-party.ts';
import { loggedIn, logIn, type Scenario } from '../contract/rig/scenario.ts';
import { REPEAT_MS, type Use } from '../rig/observe/tokens.ts';

/** Users who let an application and a program act for them: codes, refreshes, introspection, access keys, and their ends. */
export interface TokenLoad {
  readonly uses: Use[];
  finish(): Promise<void>;
}

/** The uses of one code at the same time. */
const AT_ONCE = 3;
const SCOPE = { scope: 'openid offline_access', prompt: 'consent' };

interface Credential {
  of: string;
  token: string;
}

interface Answer {
  status: number;
  accepted?: boolean | undefined;
  next?: string | undefined;
  idToken?: string | undefined;
}

export async function startTokenLoad(
  scenario: Scenario,
  { users, paceMs }: { users: number; paceMs: number },
): Promise<TokenLoad> {
  const party = await relyingParty(scenario);
  const { token_endpoint = '', introspection_endpoint = '', jwks_uri = '' } = party.config.serverMetadata();
  const authorization = `Basic ${btoa(`${party.id}:${party.secret}`)}`;
  const uses: Use[] = [];
  let isOver = false;

  const record = async (use: Pick<Use, 'action' | 'of' | 'token'>, ask: () => Promise<Answer>) => {
    const start = performance.now();
    const answer = await ask().catch(() => undefined);
    const { status, accepted } = answer ?? {};
    uses.push({ ...use, start, end: performance.now(), status, accepted });
    if (accepted === undefined) await pause(50);
    return { accepted, next: answer?.next, idToken: answer?.idToken };
  };
  const post = async (address: string, fields: Record<string, string>) => {
    const body = new URLSearchParams(fields);
    const response = await fetch(address, { method: 'POST', headers: { authorization }, body });
    return { status: response.status, data: (await response.json()) as Record<string, unknown> };
  };
  const spend = (action: 'redeem' | 'refresh', { of, token }: Credential, fields: Record<string, string>) =>
    record({ action, of, token }, async () => {
      const { status, data } = await post(token_endpoint, fields);
      const isRefused = data['error'] === 'invalid_grant';
      return {
        status,
        accepted: status === 200 || (isRefused ? false : undefined),
        next: String(data['refresh_token']),
        idToken: String(data['id_token']),
      };
    });
  const refresh = (grant: Credential) =>
    spend('refresh', grant, { grant_type: 'refresh_token', refresh_token: grant.token });
  const introspect = (grant: Credential) =>
    record({ action: 'introspect', ...grant }, async () => {
      const { status, data } = await post(introspection_endpoint, { token: grant.token });
      return { status, accepted: status === 200 ? data['active'] === true : undefined };
    });
  /** As an application does that does not have the keys yet. */
  const verify = ({ of, token }: Credential) =>
    record({ action: 'verify', of, token }, async () => {
      const response = await fetch(jwks_uri);
      if (response.status !== 200) return { status: response.status };
      const keys = createLocalJWKSet((await response.json()) as JSONWebKeySet);
      const accepted = await jwtVerify(token, keys, { currentDate: new Date(0) }).then(
        () => true,
        () => false,
      );
      return { status: response.status, accepted };
    });
  const useKey = (key: Credential) =>
    record({ action: 'key', ...key }, async () => {
      const { status } = await scenario.call('profile.get', undefined, { key: key.token });
      return { status, accepted: status === 200 || (status === 401 ? false : undefined) };
    });

  /** Until it succeeds. It is no act of the history. */
  const atLast = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (isOver) throw error;
        await pause(500);
      }
    }
  };

  const live = async (user: number) => {
    const person = await atLast(() => loggedIn(scenario));
    let { session } = person;
    let made = 0;
    const renewed = async () => {
      session = await logIn(scenario.call, person);
    };

    /** A grant whose code may have been used several times at once. */
    const newGrant = async (): Promise<Credential> => {
      for (;;) {
        const { callback, verifier } = await atLast(async () => {
          await renewed();
          return party.authorize(session, { parameters: SCOPE });
        });
        const of = `grant ${user}.${made++}`;
        const token = callback?.searchParams.get('code') ?? '';
        const fields = {
          grant_type: 'authorization_code',
          code: token,
          code_verifier: verifier,
          redirect_uri: callback ? callback.origin + callback.pathname : '',
        };
        const times = randomInt(3) === 0 ? AT_ONCE : 1;
        const answers = await Promise.all(Array.from({ length: times }, () => spend('redeem', { of, token }, fields)));
        const { next, idToken = '' } = answers.find(({ accepted }) => accepted) ?? {};
        if (next === undefined) continue;
        if (times === 1) {
          await verify({ of, token: idToken });
          return { of, token: next };
        }
        await refresh({ of, token: next });
      }
    };
    const newKey = () =>
      atLast(async (): Promise<Credential & { id: string }> => {
        await renewed();
        const { status, data } = await scenario.call(
          'keys.create',
          { name: 'Backup', scopes: ['profile:read'] },
          { session },
        );
        if (status !== 201) throw new Error(`keys.create answered ${status}`);
        return { of: `key ${user}.${made++}`, token: data.secret, id: data.key.id };
      });
    /** Resolves once the end is acknowledged. */
    const end = async (procedure: string, id: string, { of, token }: Credential) => {
      for (;;) {
        const { accepted } = await record({ action: 'end', of, token }, async () => {
          const { status } = await scenario.call(procedure, { id }, { session });
          return { status, accepted: status === 200 || status === 404 ? true : undefined };
        });
        if (accepted) return;
        // The session may be lost in a failover.
        await atLast(renewed);
      }
    };

    let [grant, key] = [await newGrant(), await newKey()];
    let spent: (Credential & { at: number }) | undefined;
    const renewGrant = async () => {
      grant = await newGrant();
      spent = undefined;
    };
    const steps = [
      ...Array(6).fill(async () => {
        const before = grant;
        const { accepted, next } = await refresh(grant);
        if (accepted === false) return renewGrant();
        // Without an answer the same token is sent again.
        if (!accepted || next === undefined) return;
        spent ??= { ...before, at: performance.now() };
        grant = { of: grant.of, token: next };
      }),
      ...Array(5).fill(async () => useKey(key)),
      ...Array(4).fill(async () => introspect(grant)),
      // A used refresh token, once it may not be repeated: its grant ends.
      async () => {
        if (!spent || performance.now() < spent.at + REPEAT_MS + 1000) return;
        const { accepted } = await refresh(spent);
        if (accepted === undefined) return;
        await refresh(grant);
        await renewGrant();
      },
      async () => {
        await end('grants.revoke', party.id, grant);
        await introspect(grant);
        await refresh(grant);
        await renewGrant();
      },
      async () => {
        await end('keys.revoke', key.id, key);
        await useKey(key);
        key = await newKey();
      },
    ];
    while (!isOver) {
      await steps[randomInt(steps.length)]?.();
      await pause(paceMs);
    }
    await introspect(grant);
    await useKey(key);
  };
  // A user in the middle of a login when the load ends gives it up.
  const lives = Promise.allSettled(Array.from({ length: users }, (_, user) => live(user)));
  return {
    uses,
    async finish() {
      isOver = true;
      await lives;
    },
  };
}
