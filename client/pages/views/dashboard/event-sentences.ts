import { deviceLabel } from '../../../../server/shared/texts/device.ts';
import { providerLabelFirst, wayIn } from '../../../../server/shared/texts/provider-label.ts';
import { type TextKey, type TextValues, textIfAny, type Write } from '../../../../server/shared/texts/template.ts';

type Details = Record<string, string>;

interface Event {
  kind: string;
  /** `user`, `administrator`, `operator`, or `service:` and its name. */
  actor: string;
  details?: Details | undefined;
}

/** The text of an event for the account's user. A kind without a text, as of a newer service, is shown by its name. */
export function sentenceOf({ kind, actor, details = {} }: Event, write: Write): string {
  const key = variantOf(kind, details) ?? `dashboard.events.${kind}`;
  const sentence = textIfAny(write, key, valuesOf(details, write)) ?? kind;
  if (actor === 'user') return sentence;
  return (
    textIfAny(write, `dashboard.eventBy.${actor}`, { sentence }) ??
    write('dashboard.eventBy.service', { sentence, service: actor.replace('service:', '') })
  );
}

/** The text of an event, if its details select a different text than its kind. */
function variantOf(kind: string, { method, device, to }: Details): TextKey | undefined {
  if (kind === 'registered' && method === 'import') return 'dashboard.eventVariants.imported';
  if (kind === 'logged-in' && device === 'new') return 'dashboard.eventVariants.loggedInOnNewDevice';
  if (kind === 'role-changed' && to === 'admin') return 'dashboard.eventVariants.madeAdministrator';
  return undefined;
}

/** The values of the placeholders: the details in words. */
function valuesOf(details: Details, write: Write): TextValues {
  const { method = '', secondFactor, reason = '', device = '', provider = '', fields = '', left } = details;
  const way = wayIn(method, write);
  return {
    ...details,
    way: textIfAny(write, `dashboard.secondFactors.${secondFactor}`, { way }) ?? way,
    reason: textIfAny(write, `dashboard.refusals.${reason}`) ?? reason,
    device: deviceLabel(device, write),
    provider: providerLabelFirst(provider, write),
    fields: fields
      .split(', ')
      .map((field) => textIfAny(write, `dashboard.profileFields.${field}`) ?? field.replace(/^fields\./, ''))
      .join(', '),
    count: Number(left),
  };
}
