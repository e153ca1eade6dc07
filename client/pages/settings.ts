import type { OperatorPages } from '../../server/shared/brand-links.ts';
import type { ProfileField } from '../../server/shared/profile-fields.ts';

/** The settings that the service writes into the shell as JSON. Their shape is that of `server/http/web/pages.ts`. */
export interface Settings {
  /** The public base URL of the service, without a trailing slash. */
  appUrl: string;
  /** The operator's brand. Unset: the default name and icon, without links. `logo` is the URL of a picture, `home` that of
   * the product. */
  brand: OperatorPages & { name?: string; logo?: string; home?: string };
  /** The allowed targets after a login: see way-back.ts. */
  origins: string[];
  acceptsLoopbackOrigins: boolean;
  /** The names of the identity providers. A login starts at /auth/<name>. */
  providers: string[];
  /** The providers that can reauthenticate users. */
  reauthenticatingProviders: string[];
  /** Who may register: everyone, addresses of these domains, invited users, or nobody. */
  registration: { mode: 'open' | 'domains' | 'invited' | 'closed'; domains: string[] };
  /** Whether a code by mail logs in. */
  emailCodes: boolean;
  /** Whether administrators may act for users. */
  impersonation: boolean;
  /** How long a deleted account can be restored. */
  restorableDays: number;
  /** The lowest score of a new password, 1 to 4. Unset: not estimated. */
  passwordStrength?: number;
  /** The version of the terms that the pages link to. */
  termsVersion?: string;
  /** The operator's own fields that users may read. */
  profileFields?: ProfileField[];
  /** The URL of the embedded mailbox, if it is in use. */
  mailbox?: string;
}

export const settings: Settings = JSON.parse(document.getElementById('settings')?.textContent ?? '{}');
