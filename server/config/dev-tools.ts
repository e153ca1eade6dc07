import { isLoopback } from '../loopback.ts';
import type { Environment } from './values.ts';

/**
 * The development tools under /dev let every caller become any user: the mailbox shows each token, the identity
 * provider checks nothing. They exist only at an address of this machine, or by DEV_TOOLS=on. The other embedded parts
 * give a caller no such power and are always available.
 */

/** Whether APP_URL is plain http on this machine, or not set. A malformed one passes here: it is reported elsewhere. */
export function isOnThisMachine({ APP_URL = 'http://localhost' }: Environment): boolean {
  const url = URL.parse(APP_URL);
  return url === null || (url.protocol === 'http:' && isLoopback(url.hostname));
}

export const hasDevTools = (env: Environment): boolean =>
  env['NODE_ENV'] !== 'production' && (env['DEV_TOOLS'] ?? (isOnThisMachine(env) ? 'on' : 'off')) === 'on';

/** Whether callers on other machines can reach the development tools. */
export function areDevToolsExposed(env: Environment): boolean {
  const { HOST = 'localhost' } = env;
  const isListeningHere = isLoopback(HOST.includes(':') ? `[${HOST}]` : HOST);
  return hasDevTools(env) && !(isOnThisMachine(env) && isListeningHere);
}
