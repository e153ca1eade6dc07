import { expect, test } from 'vitest';
import { markOf } from '../../../client/pages/views/dashboard/event-marks.ts';
import { sentenceOf } from '../../../client/pages/views/dashboard/event-sentences.ts';
import { eventKinds } from '../../../server/activity/kinds.ts';
import { languages } from '../../../server/shared/texts/languages.ts';
import { readTexts, writer } from '../../../server/texts/index.ts';

const texts = readTexts(undefined);

test('the activity page has a sentence for exactly the kinds of events', () => {
  const named = (prefix: string) =>
    Object.keys(texts.en).flatMap((key) => (key.startsWith(prefix) ? [key.slice(prefix.length)] : []));
  expect(named('dashboard.events.')).toEqual(Object.keys(eventKinds));
});

test('every kind of event has an icon of its own, not that of unknown ones', () => {
  expect(Object.keys(eventKinds).filter((kind) => markOf({ kind }).icon === 'history')).toEqual([]);
});

test.each([
  [{ kind: 'reauthenticated', actor: 'user', details: { method: 'idp' } }, 'Identity confirmed with single sign-on'],
  [{ kind: 'identity-linked', actor: 'user', details: { provider: 'idp' } }, 'Single sign-on linked'],
  [{ kind: 'identity-unlinked', actor: 'user', details: { provider: 'github' } }, 'GitHub unlinked'],
  [{ kind: 'sessions-ended', actor: 'administrator' }, 'Logged out everywhere, by an administrator'],
  [
    { kind: 'profile-changed', actor: 'service:shop', details: { fields: 'name' } },
    'Profile changed: name, by the service shop',
  ],
  [
    { kind: 'registered', actor: 'operator', details: { method: 'import' } },
    'Account imported, by the operator of the site',
  ],
  [{ kind: 'of-a-newer-service', actor: 'user' }, 'of-a-newer-service'],
  [
    { kind: 'logged-in', actor: 'user', details: { method: 'password', secondFactor: 'totp', device: 'new' } },
    'Logged in with a password and a code, on a new device',
  ],
  [
    { kind: 'login-refused', actor: 'user', details: { method: 'password', reason: 'limited' } },
    'Login refused: too many attempts',
  ],
  [
    { kind: 'login-refused', actor: 'user', details: { method: 'password', reason: 'newer-reason' } },
    'Login refused: newer-reason',
  ],
  [
    { kind: 'session-ended', actor: 'user', details: { device: 'Firefox on Linux' } },
    'Session ended: Firefox on Linux',
  ],
  [{ kind: 'recovery-code-used', actor: 'user', details: { left: '1' } }, 'Recovery code used; 1 left'],
  [{ kind: 'passkey-added', actor: 'user', details: { name: 'My {key}' } }, 'Passkey “My {key}” added'],
  [
    { kind: 'role-changed', actor: 'operator', details: { to: 'admin' } },
    'Made an administrator, by the operator of the site',
  ],
  [
    { kind: 'role-changed', actor: 'administrator', details: { to: 'user' } },
    'Made a regular user, by an administrator',
  ],
])('%o reads: %s', (event, sentence) => {
  expect(sentenceOf(event, writer(texts, 'en'))).toBe(sentence);
});

test.each([
  [
    { kind: 'logged-in', actor: 'user', details: { method: 'github', secondFactor: 'recovery', device: 'new' } },
    'Anmeldung über GitHub und mit einem Wiederherstellungscode, auf einem neuen Gerät',
  ],
  [
    { kind: 'profile-changed', actor: 'service:shop', details: { fields: 'bio, newer' } },
    'Profil geändert: Über mich, newer, durch den Dienst shop',
  ],
  [
    { kind: 'session-ended', actor: 'user', details: { device: 'Firefox on Linux' } },
    'Sitzung beendet: Firefox unter Linux',
  ],
])('%o reads in German: %s', (event, sentence) => {
  expect(sentenceOf(event, writer(texts, 'de'))).toBe(sentence);
});

test.each(languages)('every event in %s has the values of its text', (language) => {
  const details = {
    method: 'password',
    reason: 'limited',
    device: 'new',
    email: 'a@b.test',
    from: 'a',
    to: 'b',
    provider: 'idp',
    name: 'x',
    left: '2',
    fields: 'name',
    url: 'https://example.com/',
    application: 'Shop',
  };
  const sentences = Object.keys(eventKinds).map((kind) =>
    sentenceOf({ kind, actor: 'service:shop', details }, writer(texts, language)),
  );
  expect(sentences.filter((sentence) => /[{}]|undefined|NaN|dashboard/.test(sentence))).toEqual([]);
});
