import type { Context } from 'koa';
import type { Config } from '../config/index.ts';
import type { Credential } from '../lib/credential.ts';

/** RFC 6750 section 2.1 and RFC 9449 section 7.1. */
export function tokenIn(authorization: string): { scheme: string; token: string } | undefined {
  const [, scheme, token] = /^(Bearer|DPoP) {1,8}(\S{1,1024})$/i.exec(authorization) ?? [];
  return scheme && token ? { scheme: scheme.toLowerCase(), token } : undefined;
}

export const hasCredential = (ctx: Context): boolean => tokenIn(ctx.get('Authorization')) !== undefined;

/** The credential of a request. */
export function credentialOf(ctx: Context, { appUrl }: Pick<Config, 'appUrl'>): Credential | undefined {
  const { scheme, token } = tokenIn(ctx.get('Authorization')) ?? {};
  if (token === undefined) return undefined;
  if (scheme === 'bearer') return { token };
  const { state, method, path } = ctx;
  state['proof'] ??= { jwt: ctx.get('DPoP'), method, url: appUrl + path };
  return { token, proof: state['proof'] };
}
