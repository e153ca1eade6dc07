import { deviceLabel } from '../../../../server/texts/device.ts';
import { providerLabelFirst, wayIn } from '../../../../server/texts/provider-label.ts';
import { type TextKey, type TextValues, textIfAny, type Write } from '../../../../server/texts/template.ts';

type Details = Record<string, string>;

interface Event {
  kind: string;
  /** `user`, `administrator`, `operator`, or `service:` and its name. */
  actor: string;
  details?: Details | undefined;
}

/** What an event says to the user of the account; of a kind that has no text, as of a newer service, its name. */
export function sentenceOf({ kind, actor, details = {} }: Event, write: Write): string {
  const key = variantOf(kind, details) ?? `dashboard.events.${kind}`;
  const sentence = textIfAny(write, key, valuesOf(details, write)) ?? kind;
  if (actor === 'user') return sentence;
  return (
    textIfAny(write, `dashboard.eventBy.${actor}`, { sentence }) ??
    write('dashboard.eventBy.service', { sentence, service: actor.replace('service:', '') })
  );
}

/** The text of an event whose details give it another one than its kind. */
function variantOf(kind: string, { method, device, to }: Details): TextKey | undefined {
  if (kind === 'registered' && method === 'import') return 'dashboard.eventVariants.imported';
  if (kind === 'logged-in' && device === 'new') return 'dashboard.eventVariants.loggedInOnNewDevice';
  if (kind === 'role-changed' && to === 'admin') return 'dashboard.eventVariants.madeAdministrator';
  return undefined;
}

/** The values of the texts: what is in the details, in words. */
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
      .map((field) => textIfAny(write, `dashboard.profileFields.${field}`) ?? field)
      .join(', '),
    count: Number(left),
  };
}
