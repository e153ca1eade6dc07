import { expect, test } from 'vitest';
import { codeOf, createMailedTokens } from '../../../server/accounts/mail/tokens/derivation.ts';
import { createEmailCodes } from '../../../server/accounts/mail/tokens/email-codes.ts';
import { createSecrets } from '../../../server/secrets.ts';

const secrets = createSecrets(['x'.repeat(32)]);
const codes = createEmailCodes(secrets);

/** The outbox with one row. */
const outboxOf = (row: object) => {
  const query = { select: () => query, where: () => query, executeTakeFirst: async () => row };
  return { selectFrom: () => query } as never;
};

test.each([
  ['a code', { epoch: 0 }, true],
  ['the words that there is no account', 'nobody', false],
] as const)('a mail with %s has a right code: %j, %s', async (_, codeFor, expected) => {
  const { id, detail } = codes.prepare();
  const row = { userId: null, detail: codes.admit(detail, codeFor) };
  const mailed = await codes.find(outboxOf(row), id);
  expect(mailed?.isRight(codeOf(createMailedTokens(secrets).derive('email-code', id)))).toBe(expected);
});
