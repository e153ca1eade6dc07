import { providerLabel } from '../../language/provider-label.ts';
import { text } from '../../language/texts.ts';
import { labelOfBegun } from '../../session/begun.ts';
import { lastProvider } from '../../session/last-provider.ts';
import { Arrival } from '../login/arrival.tsx';

/** The result of a provider login that led to a page of the dashboard. */
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

/** Rendered by every page of the dashboard. */
export const DashboardArrival = () => <Arrival errors={errors} notices={notices} />;
