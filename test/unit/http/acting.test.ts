import { expect, test } from 'vitest';
import { procedures } from '../../../routers/procedures.ts';

/** What an administrator who acts for a user may change. A new one here is a decision. */
const ofActors = ['profile.update'];

test('a change in a session is refused to an administrator who acts for the user, or is listed here', () => {
  const open = procedures.filter(({ type, meta }) => {
    const { method, protect, errors = [] } = meta?.openapi ?? {};
    const isRefused = errors.some((code) => code === 'FORBIDDEN' || code === 'REAUTHENTICATION_REQUIRED');
    return type === 'mutation' && method !== 'GET' && protect && !isRefused;
  });
  expect(open.map(({ name }) => name).sort()).toEqual([...ofActors, 'auth.logout'].sort());
});
