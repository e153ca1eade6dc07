import { z } from 'zod';

/** What a change answers that has nothing else to tell. */
export const done = z.object({ success: z.literal(true), message: z.string() });

export const answer = (message: string): z.output<typeof done> => ({ success: true, message });
