import { writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import Koa from 'koa';
import { afterAll, expect, test } from 'vitest';
import { devMail } from '../../../server/http/dev/mail.ts';
import { mailbox } from '../../../server/parts/mail/mailbox.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

const dataDir = temporaryDirectory('dev-mail');
const app = new Koa({ asyncLocalStorage: false });
app.silent = true;
const server = app.use(devMail({ dataDir }).routes()).listen(0, '127.0.0.1');
afterAll(() => server.close());

test('a listed mail opens, however many mails to others are newer; nothing but a mail does', async () => {
  const { send } = mailbox(dataDir, { name: 'Accounts', address: 'no-reply@accounts.test' });
  const mailed = (id: string, address: string) =>
    send({ id, to: { address }, subject: 'Hello', text: `To ${address}`, html: '<p>Hello</p>' });
  await mailed('1000', 'ada@accounts.test');
  for (let id = 2000; id < 2201; id++) await mailed(String(id), 'grace@accounts.test');
  writeFileSync(join(dataDir, 'secret.json'), '{}');

  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const listed = await fetch(`${url}/dev/mail?to=ada@accounts.test`);
  expect(await listed.json()).toMatchObject([{ id: '1000' }]);
  expect(await (await fetch(`${url}/dev/mail/1000`)).text()).toContain('To ada@accounts.test');
  for (const id of ['1', '..%2Fsecret', '1000.json']) expect((await fetch(`${url}/dev/mail/${id}`)).ok).toBe(false);
});
