import PostalMime from 'postal-mime';
import { expect, test } from 'vitest';
import { DELIVERIES_AT_ONCE, MailDeferred, MailRefused, MailRejected } from '../../../server/parts/mail/contract.ts';
import { smtpTransport } from '../../../server/parts/mail/smtp.ts';
import { type Behaviour, startSmtpSink } from '../../rig/servers/smtp.ts';

const sender = { name: '', address: 'no-reply@accounts.test' };
const mailTo = (address: string) => ({ id: address, to: { address }, subject: 'Hello', text: 'Hello', html: 'Hello' });
// checks: 79
test('deliveries do not wait for each other, and a cancelled one keeps no connection', async () => {
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
});

test.each(['"Acme", Inc.', 'Acme <evil@example.test>', 'Söhne 🎉', 'a@b.test, c@d.test'])(
  'a sender named %s stays a single sender',
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

// checks: 79
test.each<[Behaviour, string]>([
  ['refuse-permanently', MailRefused.name],
  ['refuse-temporarily', MailDeferred.name],
  ['refuse-relay', MailRejected.name],
  ['refuse-sender', Error.name],
  ['refuse-message', Error.name],
  ['refuse-credentials', Error.name],
])('%s is reported as %s', async (behaviour, name) => {
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

// checks: 79
test.each([
  // RFC 3463: the address, and the mailbox, of the recipient.
  ['550 5.1.1 No such user here', MailRefused],
  ['550 5.1.0 Address rejected', MailRefused],
  ['556 5.1.10 Recipient address has null MX', MailRefused],
  ['552 5.2.2 Mailbox full', MailRefused],
  ['550-5.1.1 The email account does not exist.\n5.1.1 Try another', MailRefused],
  // A relay's own reasons, and ambiguous answers.
  ['550 relay not permitted', MailRejected],
  ["553 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)", MailRejected],
  ['554 5.7.1 Relay access denied', MailRejected],
  ['550 5.1.8 Sender address rejected', MailRejected],
  ['550 5.1.7 Bad sender', MailRejected],
  ['550 5.4.1 Access denied', MailRejected],
  ['550 5.0.0 Undefined', MailRejected],
  ['550 4.1.1 Contradicts itself', MailRejected],
  ['599 5.3.2 Not now', MailRejected],
  ['450 4.2.1 Greylisted', MailDeferred],
  ['451 5.1.1 Contradicts itself', MailDeferred],
  // Settings, and answers that are not SMTP.
  ['530 5.7.0 Authentication required', Error],
  ['999 5.1.1 Nonsense', Error],
  ['600 5.1.1 Nonsense', Error],
  ['354 5.1.1 Nonsense', Error],
])('RCPT TO answered with %s is reported as %o', async (reply, { name }) => {
  const sink = await startSmtpSink();
  const mail = smtpTransport(sink.url, sender);
  try {
    sink.behave({ refusal: { responseCode: Number(reply.slice(0, 3)), message: reply.slice(4) } });
    await expect(mail.send(mailTo('ada@example.test'))).rejects.toMatchObject({ name });
  } finally {
    mail.close();
    await sink.stop();
  }
});
