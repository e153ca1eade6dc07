/**
 * Called when a call must wait for a proof of work; `solving` ends with it. A separate file: the one of the link would
 * bring the types of tRPC's server into the projects of users.
 */
export type OnChallenge = (solving: Promise<void>) => void;
