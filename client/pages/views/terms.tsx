import { markup, text } from '../language/texts.ts';
import { settings } from '../settings.ts';

const { terms, privacy } = settings.brand;

/** Whether there are terms to accept. */
export const hasTerms = terms !== undefined || privacy !== undefined;

/** Which documents are configured: selects the text key. */
const documents = terms === undefined ? 'privacy' : privacy === undefined ? 'terms' : 'both';

/** Opens in a new tab, so that the input of the form is kept. */
const linkTo =
  (url = '') =>
  (label: string) => (
    <a href={url} target="_blank" rel="noopener">
      {label}
      <span class="unseen"> {text('common.page.newTab')}</span>
    </a>
  );

const links = { terms: linkTo(terms), privacy: linkTo(privacy) };

/** The label of the checkbox at a registration. */
export const AcceptTerms = () => <>{markup(`common.terms.accept.${documents}`, links)}</>;

/** Shown beside the links to providers, because a first login through one has no checkbox. */
export const ByContinuing = () =>
  hasTerms ? <p class="hint">{markup(`common.terms.byContinuing.${documents}`, links)}</p> : null;

/** The links to the documents. */
export const TermsLinks = () => <>{markup(`common.terms.documents.${documents}`, links)}</>;
