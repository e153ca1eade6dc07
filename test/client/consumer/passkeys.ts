import { createClient } from 'account-client';
import { logInWithPasskey, registerPasskey, supportsPasskeyAutofill, supportsPasskeys } from 'account-client/passkeys';

declare global {
  interface Window {
    passkeys: typeof passkeys;
  }
}

/** On a page of the service. */
const client = createClient({ url: '' });

const ending = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    (error: unknown) => (error instanceof Error ? error.name : String(error)),
  );

/** What a front end does with passkeys. */
const passkeys = {
  async register(credentials: { email: string; password: string }) {
    await client.auth.login.mutate(credentials);
    const { passkey } = await registerPasskey(client, { name: 'My laptop' });
    const again = await ending(registerPasskey(client));
    const { data } = await client.passkeys.list.query();
    await client.auth.logout.mutate();
    return { added: passkey.name, again, listed: data.map(({ name }) => name), supported: supportsPasskeys() };
  },

  /** The logged-in user; logs out afterwards. */
  async logIn(autofill: boolean) {
    if (autofill && !(await supportsPasskeyAutofill())) return 'no autofill';
    const { user } = await logInWithPasskey(client, { autofill });
    await client.auth.logout.mutate();
    return user.email;
  },

  abortAtOnce: () => ending(logInWithPasskey(client, { signal: AbortSignal.abort('over') })),

  /** Aborts the autofill when the page is left. */
  abort() {
    const controller = new AbortController();
    const waiting = ending(logInWithPasskey(client, { autofill: true, signal: controller.signal }));
    setTimeout(() => controller.abort('left the page'), 200);
    return waiting;
  },
};

window.passkeys = passkeys;
