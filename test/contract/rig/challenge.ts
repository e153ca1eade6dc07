import { createHash } from 'node:crypto';

/** ALTCHA's fields. */
export interface Challenge {
  algorithm: string;
  challenge: string;
  maxnumber: number;
  salt: string;
  signature: string;
}

/** The header Challenge-Solution for a challenge, found without our own client. */
export function solve({ algorithm, challenge, maxnumber, salt, signature }: Challenge): string {
  for (let number = 0; number <= maxnumber; number++) {
    if (createHash('sha256').update(`${salt}${number}`).digest('hex') === challenge)
      return btoa(JSON.stringify({ algorithm, challenge, number, salt, signature }));
  }
  throw new Error('the challenge has no solution');
}
