import type { OperatorPages } from '../../server/brand-links.ts';

/** The service's settings for the pages, as JSON in the shell. The shape is that of `server/http/web/pages.ts`. */
export interface Settings {
  /** Public base address of the service, without a slash at the end. */
  appUrl: string;
  /** The brand of the operator. Unset: the pages' own name and icon, and no such links. `logo` is the address of a picture. */
  brand: OperatorPages & { name?: string; logo?: string };
  /** Where a login may lead: see way-back.ts. */
  origins: string[];
  acceptsLoopbackOrigins: boolean;
  /** The names of the identity providers; a login begins at /auth/<name>. */
  providers: string[];
  /** Those at which a user can log in anew, to confirm a sensitive change. */
  reauthenticatingProviders: string[];
  /** Who may create an account: everyone, addresses of these domains, invited ones, or none. */
  registration: { mode: 'open' | 'domains' | 'invited' | 'closed'; domains: string[] };
  /** Of the terms that the pages link to. */
  termsVersion?: string;
  /** Where mails can be read, while the embedded mailbox takes them. */
  mailbox?: string;
}

export const settings: Settings = JSON.parse(document.getElementById('settings')?.textContent ?? '{}');
