import { expect, test } from 'vitest';
import { freshEmail } from '../rig/address.ts';
import { callerOf } from './callers.ts';
import { mailsSettled, onBothStacks, registered } from './scenario.ts';

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
});
