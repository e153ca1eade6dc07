import { expect, test } from 'vitest';
import { sentenceOf, sentences } from '../../client/pages/views/dashboard/event-sentences.ts';
import { eventKinds } from '../../server/activity/kinds.ts';
import { readTexts, writer } from '../../server/texts/index.ts';

test('the page of the activity has a sentence for every kind of event, and for no other', () => {
  expect(Object.keys(sentences).sort()).toEqual(Object.keys(eventKinds).sort());
});

test.each([
  [
    { kind: 'reauthenticated', actor: 'user', details: { method: 'idp' } },
    'Confirmed that it was you, with single sign-on',
  ],
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
])('%o reads: %s', (event, sentence) => {
  expect(sentenceOf(event, writer(readTexts(undefined), 'en'))).toBe(sentence);
});
