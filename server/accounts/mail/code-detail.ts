/**
 * What the mail says: a code, with the session epoch of the account (0 if the code will create it); or `nobody`: there
 * is no account, and none may be created.
 */
export type CodeFor = { epoch: number } | 'nobody';

const NOBODY = 'nobody';

/** The detail of an admitted mail. Before, it is only the hash of the token from which the code follows. */
export const toDetail = (hash: string, codeFor: CodeFor): string =>
  `${hash} ${codeFor === NOBODY ? NOBODY : codeFor.epoch}`;

/** Whether the mail has a code. */
export const hasCode = (detail: string): boolean => !detail.endsWith(` ${NOBODY}`);

export const epochIn = (detail: string): number | undefined =>
  hasCode(detail) ? Number(detail.split(' ')[1]) : undefined;
