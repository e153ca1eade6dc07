import { expect, test } from 'vitest';
import { freshEmail } from '../rig/address.ts';
import { callerOf } from './callers.ts';
import { mailsSettled, onBothStacks, registered, verified } from './scenario.ts';

onBothStacks((stack) => {
  test('one inbox gets thirty mails an hour, however many tags its address is given', async () => {
    const call = callerOf('rest', stack().url);
    const [local, domain] = freshEmail().split('@');
    const addresses = Array.from({ length: 40 }, (_, i) => `${local}+${i}@${domain}`);
    await Promise.all(addresses.map((email) => registered({ stack: stack(), call }, { email })));
    await Promise.all(addresses.map((email) => mailsSettled(stack(), email)));
    const mails = await Promise.all(addresses.map((email) => stack().mailsTo(email)));
    expect(mails.flat().length).toBe(30);
    // Another inbox of the same domain has its own share.
    const { email } = await registered({ stack: stack(), call }, { email: `${local}-other@${domain}` });
    await stack().waitForMail({ to: email });
  });

  test('a flood of tags does not keep the owner of the inbox from a reset', async () => {
    const call = callerOf('rest', stack().url);
    const owner = await verified({ stack: stack(), call });
    const [local, domain] = owner.email.split('@');
    const addresses = Array.from({ length: 31 }, (_, i) => `${local}+${i}@${domain}`);
    await Promise.all(addresses.map((email) => registered({ stack: stack(), call }, { email })));
    await Promise.all(addresses.map((email) => mailsSettled(stack(), email)));
    await call('auth.forgotPassword', { email: owner.email });
    await stack().waitForMail({ to: owner.email, subject: 'Reset your password' });
  });
});
