/*
 * The development tools exist only at a loopback APP_URL, or with DEV_TOOLS=on. The other embedded parts give callers
 * no such power and are always available.
 */

import { isLoopback } from '../shared/loopback.ts';
import type { Environment } from './values.ts';

/**
 * True if the development tools under /dev are served. They let every caller become any user: the mailbox shows tokens,
 * the provider checks nothing.
 */

/** True if APP_URL is plain http on this machine, or unset. A malformed one passes: it is reported elsewhere. */
export function isOnThisMachine({ APP_URL = 'http://localhost' }: Environment): boolean {
  const url = URL.parse(APP_URL);
  return url === null || (url.protocol === 'http:' && isLoopback(url.hostname));
}

export const hasDevTools = (env: Environment): boolean =>
  env['NODE_ENV'] !== 'production' && (env['DEV_TOOLS'] ?? (isOnThisMachine(env) ? 'on' : 'off')) === 'on';

/** True if callers on other machines can reach the development tools. */
export function areDevToolsExposed(env: Environment): boolean {
  const { HOST = 'localhost' } = env;
  const isListeningHere = isLoopback(HOST.includes(':') ? `[${HOST}]` : HOST);
  return hasDevTools(env) && !(isOnThisMachine(env) && isListeningHere);
}
