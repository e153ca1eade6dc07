import { z } from 'zod';

/** A time in a response. */
export const unixSeconds = z.int().meta({ description: 'Unix seconds', example: 1_700_000_000 });

/** From milliseconds since 1970, rounded down. */
export const toUnixSeconds = (ms: number): number => Math.floor(ms / 1000);

export const toUnixSecondsOrNull = (ms: number | null | undefined): number | null =>
  ms == null ? null : toUnixSeconds(ms);
