import PostalMime from 'postal-mime';
import { expect, test } from 'vitest';
import { freshEmail } from '../rig/address.ts';
import { callerOf } from './callers.ts';
import { beginRegistration } from './passkey-scenario.ts';
import { loggedIn, onBothStacks, registered } from './scenario.ts';

/** The operator's name, where others than the pages show it. */

const NAME = '"Ada" & <Söhne>, Inc. 🎉';

onBothStacks(
  (stack) => {
    const scenario = () => ({ stack: stack(), call: callerOf('rest', stack().url) });

    test('mails have it in subject, text, HTML and sender', async () => {
      const { email } = await registered(scenario(), { email: freshEmail() });
      const { subject, text, html } = await stack().waitForMail({ to: email });
      expect(subject).toBe(`Verify your email for ${NAME}`);
      expect(text).toContain(`log in to ${NAME}.`);
      expect(text).toMatch(/\n\nSupport: help@example\.test\n+$/);
      expect(html).toContain('log in to &quot;Ada&quot; &amp; &lt;Söhne&gt;, Inc. 🎉.');
      expect(html).toContain('background:#0f766e');
      const sent = stack()
        .smtp?.mails()
        .find(({ to }) => to.includes(email));
      if (sent) {
        const { from } = await PostalMime.parse(sent.raw);
        expect(from).toEqual({ name: NAME, address: 'no-reply@accounts.test' });
      }
    });

    test('authenticators show it; the RP id stays', async () => {
      const { call } = scenario();
      const { session } = await loggedIn(scenario());
      const { data } = await call('totp.begin', undefined, { session });
      expect(new URL(data.uri).searchParams.get('issuer')).toBe(NAME);
      const { options } = await beginRegistration(call, session);
      expect(options.rp).toEqual({ id: 'localhost', name: NAME });
    });

    test('the banner has it', () => {
      expect(stack().services[0]?.output()).toMatch(new RegExp(`Shown as +${NAME.replaceAll('.', '\\.')}\n`));
    });
  },
  {
    env: {
      APP_NAME: NAME,
      BRAND_COLOR: '#0f766e',
      SUPPORT_URL: 'mailto:help@example.test',
      MAIL_FROM: 'no-reply@accounts.test',
    },
  },
);
