import PostalMime from 'postal-mime';
import { expect, test } from 'vitest';
import { freshEmail } from '../../rig/servers/address.ts';
import { callerOf } from '../rig/callers.ts';
import { beginRegistration } from '../rig/passkey-scenario.ts';
import { loggedIn, onBothStacks, registered } from '../rig/scenario.ts';

/** APP_NAME and APP_HOME_URL in mails, passkeys and the banner. */

const NAME = '"Ada" & <Söhne>, Inc. 🎉';

const HOME = 'https://app.example.test/start';

onBothStacks(
  (stack) => {
    const scenario = () => ({ stack: stack(), call: callerOf('rest', stack().url) });

    test('mails name the brand in subject, text, HTML and sender', async () => {
      const { email } = await registered(scenario(), { email: freshEmail() });
      const { from: sender, subject, text, html } = await stack().waitForMail({ to: email });
      expect(subject).toBe(`Verify your email for ${NAME}`);
      expect(text).toContain(`log in to ${NAME}.`);
      const back = `Back to ${NAME}: ${HOME}`;
      const withoutAutofill = text.trimEnd().replace(/\n\n@\S+ #\d{6}$/, '');
      expect(withoutAutofill.endsWith(`\n\n${back}\nSupport: help@example.test`)).toBe(true);
      expect(html).toMatch(new RegExp(`<a href="${HOME}"[^>]*><img src="https://cdn\\.example\\.test/logo\\.png"`));
      expect(html).toContain('log in to &quot;Ada&quot; &amp; &lt;Söhne&gt;, Inc. 🎉.');
      expect(html).toContain('background:#0f766e');
      const [sent] = stack().smtp?.mails(email) ?? [];
      if (sent) {
        const { from } = await PostalMime.parse(sent.raw);
        expect(from).toEqual({ name: NAME, address: 'no-reply@accounts.test' });
      } else expect(sender).toBe(`${NAME} <no-reply@accounts.test>`);
    });

    test('authenticators show the brand; the RP ID is unchanged', async () => {
      const { call } = scenario();
      const { session } = await loggedIn(scenario());
      const { data } = await call('totp.begin', undefined, { session });
      expect(new URL(data.uri).searchParams.get('issuer')).toBe(NAME);
      const { options } = await beginRegistration(call, session);
      expect(options.rp).toEqual({ id: 'localhost', name: NAME });
    });

    test('the banner names the brand', () => {
      expect(stack().services[0]?.output()).toMatch(new RegExp(`Shown as +${NAME.replaceAll('.', '\\.')}\n`));
    });
  },
  {
    env: {
      APP_NAME: NAME,
      APP_HOME_URL: HOME,
      APP_LOGO_URL: 'https://cdn.example.test/logo.png',
      BRAND_COLOR: '#0f766e',
      SUPPORT_URL: 'mailto:help@example.test',
      MAIL_FROM: 'no-reply@accounts.test',
    },
  },
);
