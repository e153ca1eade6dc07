import { z } from 'zod';
import type { ListedMethod } from '../../server/accounts/credentials/index.ts';
import { toUnixSeconds, unixSeconds } from './unix-seconds.ts';

export const listedMethod = z.object({
  method: z.string().meta({
    description: '`password`, `passkey`, `totp` (an authenticator app), or the name of an identity provider',
    example: 'password',
  }),
  addedAt: unixSeconds,
});

export const toListedMethod = ({ method, addedAt }: ListedMethod) => ({ method, addedAt: toUnixSeconds(addedAt) });
