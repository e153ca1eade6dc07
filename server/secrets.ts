import { createHmac } from 'node:crypto';

/** What is derived from APP_SECRET, by purpose: no label of one purpose is that of another. */
type Label = `one-time-token:${string}` | `put-object\n${string}` | `dev-idp:${string}`;

export interface Secrets {
  /**
   * 32 bytes in base64url for a label: under the current secret, which alone makes anything new, and then under each former
   * one, whose work is accepted until it expires.
   */
  derive(label: Label): [current: string, ...former: string[]];
}

/** The parts of APP_SECRET, the current one first. */
export type SecretParts = readonly [string, ...string[]];

export function createSecrets([current, ...former]: SecretParts): Secrets {
  return {
    derive(label) {
      const under = (secret: string) => createHmac('sha256', secret).update(label).digest('base64url');
      return [under(current), ...former.map(under)];
    },
  };
}
