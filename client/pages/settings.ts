/** The service's settings for the pages, as JSON in the shell. The shape is that of `server/http/web/pages.ts`. */
export interface Settings {
  /** Public base address of the service, without a slash at the end. */
  appUrl: string;
  /** The names of the identity providers; a login begins at /auth/<name>. */
  providers: string[];
  /** Where mails can be read, while the embedded mailbox takes them. */
  mailbox?: string;
}

export const settings: Settings = JSON.parse(document.getElementById('settings')?.textContent ?? '{}');
