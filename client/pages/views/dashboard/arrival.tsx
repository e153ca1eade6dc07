import { lastProvider } from '../../last-provider.ts';
import { providerLabel } from '../../provider-label.ts';
import { text } from '../../texts.ts';
import { Arrival } from '../arrival.tsx';
import { labelOfBegun } from './begun.ts';

/** Why the browser was sent to a page of the dashboard: the outcome at an identity provider. */
const errors = new Map<string | null, string>([
  ['cancelled', text('dashboard.arrival.cancelled')],
  ['oauth_failed', text('dashboard.arrival.failed')],
  ['identity_taken', text('dashboard.arrival.taken')],
  ['identity_mismatch', text('dashboard.arrival.otherUser')],
  ['login_not_fresh', text('dashboard.arrival.notFresh')],
  ['reauthentication_required', text('dashboard.arrival.beginHere')],
]);
const name = lastProvider();
const provider = name && providerLabel(name);
const label = labelOfBegun();
const notices = new Map<string | null, string>([
  ['linked', provider ? text('dashboard.arrival.linked', { provider }) : text('dashboard.arrival.linkedUnnamed')],
  [
    'already-linked',
    provider ? text('dashboard.arrival.alreadyLinked', { provider }) : text('dashboard.arrival.alreadyLinkedUnnamed'),
  ],
  ['confirmed', label ? text('dashboard.arrival.pressAgain', { label }) : text('dashboard.arrival.goOn')],
  ['restored', text('dashboard.arrival.restored')],
]);

/** Drawn by every page of the dashboard. */
export const DashboardArrival = () => <Arrival errors={errors} notices={notices} />;
