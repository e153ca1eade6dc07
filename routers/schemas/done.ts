import { z } from 'zod';

/** The response of a change without other data. */
export const done = z.object({ success: z.literal(true), message: z.string() });

export const answer = (message: string): z.output<typeof done> => ({ success: true, message });
