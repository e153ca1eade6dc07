import type { ComponentChildren } from 'preact';
import { settings } from '../settings.ts';

const { terms, privacy } = settings.brand;

/** Whether users are asked to accept anything. */
export const hasTerms = terms !== undefined || privacy !== undefined;

/** A sentence for each of what users may be asked to accept: both, or one of them. */
type Sentences = Record<'both' | 'terms' | 'privacy', string>;

const toAccept: Sentences = {
  both: 'I accept the {terms} and the {privacy}.',
  terms: 'I accept the {terms}.',
  privacy: 'I accept the {privacy}.',
};
const byContinuing: Sentences = {
  both: 'By continuing with a provider you accept the {terms} and the {privacy}.',
  terms: 'By continuing with a provider you accept the {terms}.',
  privacy: 'By continuing with a provider you accept the {privacy}.',
};

const links: Record<string, { url: string; label: string }> = {
  ...(terms !== undefined && { '{terms}': { url: terms, label: 'terms of service' } }),
  ...(privacy !== undefined && { '{privacy}': { url: privacy, label: 'privacy policy' } }),
};

/** With links that open beside the page: what is typed in its form stays. */
const withLinks = (sentence: string): ComponentChildren[] =>
  sentence.split(/(\{\w+\})/).map((part) => {
    const link = links[part];
    return link ? (
      <a key={part} href={link.url} target="_blank" rel="noopener">
        {link.label}
        <span class="unseen"> (opens in a new tab)</span>
      </a>
    ) : (
      part
    );
  });

const sentenceOf = (sentences: Sentences): ComponentChildren[] => {
  if (terms !== undefined && privacy !== undefined) return withLinks(sentences.both);
  return withLinks(terms === undefined ? sentences.privacy : sentences.terms);
};

/** The label of the box at a registration. */
export const AcceptTerms = () => <>{sentenceOf(toAccept)}</>;

/** Beside the links to providers: who comes through one for the first time meets no box. */
export const ByContinuing = () => (hasTerms ? <p class="hint">{sentenceOf(byContinuing)}</p> : null);

/** The documents by themselves. */
export const TermsLinks = () => <>{Object.keys(links).map((name, i) => [i > 0 && ', ', ...withLinks(name)])}</>;
