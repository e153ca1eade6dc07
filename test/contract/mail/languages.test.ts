import { expect, test } from 'vitest';
import { freshEmail } from '../../rig/servers/address.ts';
import type { CallOptions } from '../rig/callers.ts';
import {
  administrator,
  eventsOf,
  everywhere,
  expectRefusal,
  loggedIn,
  logIn,
  mailsSettled,
  PASSWORD,
  registered,
  type Scenario,
  verified,
} from '../rig/scenario.ts';

/** The language of users and of their mails. */

const german: CallOptions = { headers: { 'accept-language': 'de-CH,de;q=0.9,en;q=0.8' } };
const french: CallOptions = { headers: { 'accept-language': 'fr' } };
const withCookie = (language: string): CallOptions => ({
  headers: { 'accept-language': 'de', cookie: `auth_language=${language}` },
});

const resets = {
  en: /^Reset your password/,
  de: /^Setzen Sie Ihr Passwort für .* zurück$/,
  fr: /^Réinitialisez votre mot de passe pour /,
  es: /^Restablezca su contraseña de /,
};

everywhere((scenario) => {
  /** Requests a reset in a browser with the given language, and waits for the mail in the expected one. */
  const expectReset = async (email: string, language: keyof typeof resets, options?: CallOptions) => {
    const { call, stack } = scenario();
    expect((await call('auth.forgotPassword', { email }, options)).status).toBe(200);
    const mail = await stack.waitForMail({ to: email, subject: resets[language] });
    expect(mail.html).toContain(`<html lang="${language}">`);
    return mail;
  };

  test('a registration in a German browser sends a German mail', async () => {
    const { call, stack } = scenario();
    const person = { email: freshEmail(), password: PASSWORD, name: 'Ada' };
    expect((await call('auth.register', person, german)).data).toMatchObject({ success: true });
    const { subject, text, html } = await stack.waitForMail({ to: person.email, subject: /^Bestätigen Sie/ });
    expect(subject).toMatch(/^Bestätigen Sie Ihre E-Mail-Adresse für /);
    expect(text).toMatch(/^Guten Tag,\r?\n/);
    expect(text).toContain('Bitte bestätigen Sie, dass diese Adresse Ihnen gehört');
    expect(html).toContain('Bitte bestätigen Sie, dass diese Adresse Ihnen gehört');
    expect(html).toContain('<html lang="de">');
    await mailsSettled(stack, person.email);
    expect((await call('auth.resendVerification', { email: person.email }, french)).status).toBe(200);
    await stack.waitForMail({ to: person.email, subject: /^Confirmez votre adresse e-mail/ });
  });

  test('the language cookie overrides Accept-Language', async () => {
    const { call, stack } = scenario();
    const email = freshEmail();
    await call('auth.register', { email, password: PASSWORD, name: 'Ada' }, withCookie('es'));
    await stack.waitForMail({ to: email, subject: /^Confirme su correo electrónico/ });
  });

  test('a reset is mailed in the language of the requesting browser', async () => {
    const { email } = await verified(scenario());
    await expectReset(email, 'de', german);
  });

  test('the language chosen by a user comes first, until it is cleared', async () => {
    const { call } = scenario();
    const { email, session } = await loggedIn(scenario());
    const choice = async () => (await call('profile.language', undefined, { session })).data;
    expect(await choice()).toEqual({ language: null });
    expect((await call('profile.update', { language: 'fr' }, { session })).status).toBe(200);
    expect(await choice()).toEqual({ language: 'fr' });
    await expectReset(email, 'fr', withCookie('es'));
    await call('profile.update', { language: null }, { session });
    expect(await choice()).toEqual({ language: null });
    await expectReset(email, 'es', withCookie('es'));
  });

  test('each change of language is one event; documented responses omit the language', async () => {
    const { call, stack } = scenario();
    const { id, session } = await loggedIn(scenario());
    const { data: before } = await call('profile.get', undefined, { session });
    const { data } = await call('profile.update', { bio: 'Engines', language: 'de' }, { session });
    expect(data).toEqual({ success: true, user: { ...before.user, bio: 'Engines' } });
    expect((await call('profile.update', { language: 'de' }, { session })).data).toEqual(data);
    expect((await call('profile.update', { location: 'London' }, { session })).data.user).toEqual({
      ...data.user,
      location: 'London',
    });
    expect((await call('profile.language', undefined, { session })).data).toEqual({ language: 'de' });
    expect(await eventsOf(stack, id, 'profile-changed')).toEqual([{ fields: 'bio, language' }, { fields: 'location' }]);
    expect((await call('profile.get', undefined, { session })).data.user).not.toHaveProperty('language');
    expect((await call('users.get', { id })).data).not.toHaveProperty('user.language');
  });

  test.each(['it', 'DE', '', 'de-CH', 7, ['de']])('%j is not a language', async (language) => {
    const { call } = scenario();
    const { session } = await loggedIn(scenario());
    const reply = await call('profile.update', { language }, { session });
    expectRefusal(reply, 400, 'VALIDATION_FAILED');
    expect(reply.details?.['language']?.rule).toBe('unknown_language');
    expect((await call('profile.language', undefined, { session })).data).toEqual({ language: null });
  });

  test('a change of language requires a session', async () => {
    expectRefusal(await scenario().call('profile.language'), 401, 'UNAUTHENTICATED');
  });

  test('mails about administrators’ actions use the language of the user', async () => {
    const { call, stack } = scenario();
    const chosen = await loggedIn(scenario());
    await call('profile.update', { language: 'es' }, { session: chosen.session });
    const remembered = await verified(scenario());
    await logIn(call, remembered, german);
    const { session } = await administrator(scenario());
    for (const { id } of [chosen, remembered]) {
      expect((await call('users.block', { id }, { session, ...french })).status).toBe(200);
    }
    await stack.waitForMail({ to: chosen.email, subject: /^Su cuenta en .* está bloqueada$/ });
    await stack.waitForMail({ to: remembered.email, subject: /^Ihr Konto bei .* ist gesperrt$/ });
  });

  test('a mail about a new device uses the language of earlier browsers', async () => {
    const { call, stack } = scenario();
    const person = await verified(scenario());
    await logIn(call, person, german);
    await logIn(call, person, french);
    await stack.waitForMail({ to: person.email, subject: /^Neue Anmeldung bei / });
    expect(await languagesOf(scenario(), person.id)).toEqual({ language: null, browser_language: 'fr' });
  });

  test('a program without a language keeps the known language', async () => {
    const { call } = scenario();
    const person = await verified(scenario());
    await logIn(call, person, german);
    await logIn(call, person, { headers: { 'accept-language': '*' } });
    expect(await languagesOf(scenario(), person.id)).toEqual({ language: null, browser_language: 'de' });
  });

  test('an invitation uses the language that the administrator names, else that of the browser', async () => {
    const { call, stack } = scenario();
    const { session } = await administrator(scenario());
    const invite = async (input: object, subject: RegExp) => {
      const email = freshEmail();
      const reply = await call('users.invite', { email, ...input }, { session, ...german });
      expect(reply.code).toBeUndefined();
      await stack.waitForMail({ to: email, subject });
    };
    await invite({ language: 'fr' }, /^Invitation à rejoindre /);
    await invite({}, /^Sie sind zu .* eingeladen$/);
    const refused = await call('users.invite', { email: freshEmail(), language: 'it' }, { session });
    expectRefusal(refused, 400, 'VALIDATION_FAILED');
  });

  test('the export contains the chosen, browser and mail languages', async () => {
    const { call, stack } = scenario();
    const person = { email: freshEmail(), password: PASSWORD, name: 'Ada' };
    await call('auth.register', person, german);
    const { text } = await stack.waitForMail({ to: person.email, subject: /^Bestätigen/ });
    await call('auth.verifyEmail', { token: /token=([\w-]+)/.exec(text)?.[1] });
    const session = await logIn(call, person, german);
    await call('profile.update', { language: 'fr' }, { session });
    const { data } = await call('account.export', undefined, { session });
    expect(data).toMatchObject({
      profile: { language: 'fr', browserLanguage: 'de' },
      mails: [
        { kind: 'verify-email', language: 'de' },
        { kind: 'new-device', language: 'de' },
      ],
    });
  });

  test('“This was not me” clears a language that another person chose', async () => {
    const { call, stack } = scenario();
    const person = await verified(scenario());
    await logIn(call, person, german);
    const session = await logIn(call, person, french);
    await call('profile.update', { language: 'fr' }, { session });
    const { text } = await stack.waitForMail({ to: person.email, subject: /^Neue Anmeldung bei |^Nouvelle connexion/ });
    const token = /token=([\w-]+)/.exec(text)?.[1];
    expect((await call('account.notMe', { token }, german)).status).toBe(200);
    await stack.waitForMail({ to: person.email, subject: resets.de });
    expect(await languagesOf(scenario(), person.id)).toEqual({ language: null, browser_language: 'de' });
  });

  test('the owner of the inbox clears the language of the registrant', async () => {
    const { call, stack } = scenario();
    const { id, email } = await registered(scenario());
    await stack.database("update users set language = 'es', browser_language = 'es' where id = ?", [id]);
    await call('auth.forgotPassword', { email }, german);
    const { text } = await stack.waitForMail({ to: email, subject: resets.es });
    const token = /token=([\w-]+)/.exec(text)?.[1];
    const reset = await call('auth.resetPassword', { token, email, password: `${PASSWORD}!` }, german);
    expect(reset.status).toBe(200);
    expect(await languagesOf(scenario(), id)).toEqual({ language: null, browser_language: 'de' });
  });
});

const languagesOf = async ({ stack }: Scenario, id: string) => {
  const [row] = await stack.database('select language, browser_language from users where id = ?', [id]);
  return row;
};
