import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mailbox, readMailbox } from '../../../server/parts/mail/mailbox.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

test('a look for the mails to an address reads a mail to another address once', async () => {
  const dataDir = temporaryDirectory('mailbox');
  const { send } = mailbox(dataDir, { name: 'Accounts', address: 'no-reply@accounts.test' });
  const mailed = (id: string, address: string) =>
    send({ id, to: { address }, subject: 'Hello', text: 'Hello', html: '<p>Hello</p>' });
  await mailed('1', 'ada@accounts.test');
  await mailed('2', 'grace@accounts.test');
  const look = async (to?: string) => (await readMailbox(dataDir, { to, limit: 10 })).map(({ id }) => id);
  expect(await look('ada@accounts.test')).toEqual(['1']);
  expect(await look('grace@accounts.test')).toEqual(['2']);
  expect(await look()).toEqual(['2', '1']);
  await mailed('3', 'ada@accounts.test');
  expect(await look('ada@accounts.test')).toEqual(['3', '1']);
  writeFileSync(join(dataDir, 'mail', '2.json'), 'unreadable');
  expect(await look('ada@accounts.test')).toEqual(['3', '1']);
});
