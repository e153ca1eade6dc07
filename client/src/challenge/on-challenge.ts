/**
 * Called when a call must wait for a proof of work, with the promise of its end. A file of its own: that of the link
 * would bring the types of tRPC's server into the projects of adopters.
 */
export type OnChallenge = (solving: Promise<void>) => void;
