import { freshEmail } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import { callerOf } from './callers.ts';
import { PASSWORD } from './scenario.ts';

/** Development servers on this machine. */
export const frontEnds = [
  'http://localhost:5173',
  'http://127.0.0.1:5173',
  'http://[::1]:8080',
  'https://app.localhost:4200',
];

/** A login from a page of this origin, and what its browser would see. */
export async function loginFrom(stack: Stack, origin: string) {
  const headers = { origin, 'sec-fetch-site': 'cross-site' };
  const reply = await callerOf('rest', stack.url)(
    'auth.login',
    { email: freshEmail(), password: PASSWORD },
    { headers },
  );
  return {
    code: reply.code,
    allowed: reply.headers.get('access-control-allow-origin'),
    credentials: reply.headers.get('access-control-allow-credentials'),
  };
}
