/**
 * What an address is mailed: the code for its account in this session epoch, or that there is neither an account nor a
 * registration. An account that the code makes has the epoch 0.
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
