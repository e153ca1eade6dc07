import { lastProvider } from '../../last-provider.ts';
import { providerLabel } from '../../provider-label.ts';
import { Arrival } from '../arrival.tsx';
import { labelOfBegun } from './begun.ts';

/** Why the browser was sent to a page of the dashboard: the outcome at an identity provider. */
const errors = new Map<string | null, string>([
  ['cancelled', 'You cancelled at the provider. Nothing has changed.'],
  ['oauth_failed', 'It did not work at the provider. Please try again.'],
  ['identity_taken', 'That login belongs to another account here. Nothing has changed.'],
  ['identity_mismatch', 'At the provider you logged in as another user than the one that is linked here.'],
  [
    'login_not_fresh',
    'The provider did not confirm that you have logged in just now. Please confirm with your password, or log out and in again.',
  ],
  ['reauthentication_required', 'Please begin here: you are asked to confirm that it is you.'],
]);
const provider = lastProvider();
const login = provider ? `The login with ${providerLabel(provider)}` : 'The login';
const notices = new Map<string | null, string>([
  ['linked', `${login} is linked. You can log in with it from now on.`],
  [
    'already-linked',
    `${login} was linked already: nothing has changed. To link another, log out at the provider first.`,
  ],
  ['confirmed', confirmed()],
  ['restored', 'Your account is restored.'],
]);

function confirmed(): string {
  const label = labelOfBegun();
  return label ? `Welcome back: please press “${label}” again.` : 'Welcome back: please go on where you were.';
}

/** Drawn by every page of the dashboard. */
export const DashboardArrival = () => <Arrival errors={errors} notices={notices} />;
