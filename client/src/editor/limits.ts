/** What the service converts, as in server/shared/image-limits.ts. It refuses any other file. */
export const TAKEN_TYPES = ['image/jpeg', 'image/png'];
export const MAX_BYTES = 5 * 1024 * 1024;
export const MAX_PIXELS = 24_000_000;

/** Twice the side of the stored avatar, so that nothing is seen of being encoded twice. */
export const AVATAR_SIDE = 1024;
export const POST_SIDE = 1600;
