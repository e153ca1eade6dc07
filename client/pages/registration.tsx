import { settings } from './settings.ts';
import { language, text } from './texts.ts';

const { mode, domains } = settings.registration;

/** Whether users can create an account who were not invited. */
export const isOpenToNew = mode === 'open' || mode === 'domains';

/** `at example.com or below example.org`. */
const places = new Intl.ListFormat(language, { type: 'disjunction' }).format(
  domains.map((domain) =>
    domain.startsWith('*.')
      ? text('entry.registration.below', { domain: domain.slice(2) })
      : text('entry.registration.at', { domain }),
  ),
);

/** Which addresses are let in, where not every one is. */
export const addressHint = mode === 'domains' ? text('entry.registration.hint', { places }) : undefined;

/** Why no account was created. */
export const reason = text(`entry.registration.reasons.${mode}`, { places });

/** After a login through a provider that leads to no account. */
export const RegistrationClosed = () => <>{text('entry.registration.noAccount', { reason })}</>;
