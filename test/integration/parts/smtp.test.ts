import PostalMime from 'postal-mime';
import { expect, test } from 'vitest';
import { DELIVERIES_AT_ONCE, MailDeferred, MailRefused } from '../../server/parts/mail/contract.ts';
import { smtpTransport } from '../../server/parts/mail/smtp.ts';
import { type Behaviour, startSmtpSink } from '../rig/smtp.ts';

const sender = { name: '', address: 'no-reply@accounts.test' };
const mailTo = (address: string) => ({ id: address, to: { address }, subject: 'Hello', text: 'Hello', html: 'Hello' });
test('no delivery waits for another, and one that is given up takes no connection from the next', async () => {
  const sink = await startSmtpSink();
  const mail = smtpTransport(sink.url, sender, 4000);
  const sendAll = (name: string) =>
    Promise.allSettled(
      Array.from({ length: DELIVERIES_AT_ONCE }, (_, i) => mail.send(mailTo(`${name}${i}@example.test`))),
    );
  try {
    sink.behave('hold');
    const all = sendAll('held');
    await sink.waitForAttempts({ outcome: 'held', count: DELIVERIES_AT_ONCE });
    sink.behave('accept');
    const sent = await all;
    expect(sent.map(({ status }) => status)).toEqual(Array(DELIVERIES_AT_ONCE).fill('fulfilled'));

    sink.behave({ slow: 20_000 });
    const givenUp = await sendAll('hung');
    expect(givenUp.map(({ status }) => status)).toEqual(Array(DELIVERIES_AT_ONCE).fill('rejected'));
    sink.behave('accept');
    await mail.send(mailTo('next@example.test'));
    // The server has not answered those yet.
    expect(sink.mails().some(({ to }) => to[0]?.startsWith('hung'))).toBe(false);
  } finally {
    mail.close();
    await sink.stop();
  }
}, 40_000);

test.each(['"Acme", Inc.', 'Acme <evil@example.test>', 'Söhne 🎉', 'a@b.test, c@d.test'])(
  'a sender of the name %s is one sender',
  async (name) => {
    const sink = await startSmtpSink();
    const mail = smtpTransport(sink.url, { ...sender, name });
    try {
      await mail.send({ ...mailTo('ada@example.test'), subject: `Hello from ${name}` });
      const [{ raw = '', subject = '' } = {}] = sink.mails();
      const { from, headers } = await PostalMime.parse(raw);
      expect([from, subject]).toEqual([{ ...sender, name }, `Hello from ${name}`]);
      expect(headers.filter(({ key }) => key === 'from')).toHaveLength(1);
    } finally {
      mail.close();
      await sink.stop();
    }
  },
);

test.each<[Behaviour, string]>([
  ['refuse-permanently', MailRefused.name],
  ['refuse-temporarily', MailDeferred.name],
  ['refuse-relay', Error.name],
  ['refuse-sender', Error.name],
  ['refuse-message', Error.name],
  ['refuse-credentials', Error.name],
])('%s is told as %s', async (behaviour, name) => {
  const sink = await startSmtpSink();
  const url = new URL(sink.url);
  url.username = 'accounts';
  url.password = 'accounts-password';
  const mail = smtpTransport(url.href, sender);
  try {
    sink.behave(behaviour);
    await expect(mail.send(mailTo('ada@example.test'))).rejects.toMatchObject({ name });
  } finally {
    mail.close();
    await sink.stop();
  }
});
