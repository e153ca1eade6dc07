import { z } from 'zod';
import { invalidField } from '../server/errors.ts';
import type { Context } from './context.ts';

/** The input `returnTo`: a final location in place of an account page. */
export const returnTo = (description: string) =>
  z
    .string()
    .optional()
    .meta({
      description: `${description}: a path, or a URL on the origin of APP_URL or ALLOWED_ORIGINS`,
      example: 'https://app.example.com/basket',
    });

/** The input of requests that mail a link. */
export const returnToOfLink = returnTo('The final location of the browser that opens the mailed link');

/** The output of requests that use a mailed link. */
export const returnToOutput = z.string().optional().meta({
  description: 'The `returnTo` of the request that mailed the link, if it is still allowed',
  example: 'https://app.example.com/basket',
});

/** Rejects with VALIDATION_FAILED, to prevent open redirects. */
export function admitReturn(ctx: Context, asked: string | undefined): string | undefined {
  if (asked === undefined) return undefined;
  const admitted = ctx.returnAddress(asked);
  if (admitted !== undefined) return admitted;
  throw invalidField('returnTo', 'not_allowed', 'Must be a path, or an address on an origin of ALLOWED_ORIGINS');
}

/** The field `returnTo` of an answer. The stored target is checked again: the origin may no longer be allowed. */
export function storedReturn(ctx: Context, stored: string | null | undefined): { returnTo?: string } {
  const admitted = stored ? ctx.returnAddress(stored) : undefined;
  return admitted === undefined ? {} : { returnTo: admitted };
}
