import { settings } from '../settings.ts';
import { markup, text } from '../texts.ts';

const { terms, privacy } = settings.brand;

/** Whether users are asked to accept anything. */
export const hasTerms = terms !== undefined || privacy !== undefined;

/** Which of them: the sentences about them differ. */
const asked = terms === undefined ? 'privacy' : privacy === undefined ? 'terms' : 'both';

/** Opens beside the page: what is typed in its form stays. */
const linkTo =
  (url = '') =>
  (label: string) => (
    <a href={url} target="_blank" rel="noopener">
      {label}
      <span class="unseen"> {text('common.page.newTab')}</span>
    </a>
  );

const links = { terms: linkTo(terms), privacy: linkTo(privacy) };

/** The label of the box at a registration. */
export const AcceptTerms = () => <>{markup(`common.terms.accept.${asked}`, links)}</>;

/** Beside the links to providers: who comes through one for the first time meets no box. */
export const ByContinuing = () =>
  hasTerms ? <p class="hint">{markup(`common.terms.byContinuing.${asked}`, links)}</p> : null;

/** The documents by themselves. */
export const TermsLinks = () => <>{markup(`common.terms.documents.${asked}`, links)}</>;
