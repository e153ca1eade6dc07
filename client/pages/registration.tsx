import { language, text } from './language/texts.ts';
import { settings } from './settings.ts';

const { mode, domains } = settings.registration;

/** Whether users can register without an invitation. */
export const isOpenToNew = mode === 'open' || mode === 'domains';

/** `at example.com or at subdomains of example.org`. */
const places = new Intl.ListFormat(language, { type: 'disjunction' }).format(
  domains.map((domain) =>
    domain.startsWith('*.')
      ? text('entry.registration.below', { domain: domain.slice(2) })
      : text('entry.registration.at', { domain }),
  ),
);

/** The allowed addresses, if they are restricted. */
export const addressHint = mode === 'domains' ? text('entry.registration.hint', { places }) : undefined;

/** The reason why no account was created. */
export const reason = text(`entry.registration.reasons.${mode}`, { places });

/** Shown after a provider login without an account. */
export const RegistrationClosed = () => <>{text('entry.registration.noAccount', { reason })}</>;
