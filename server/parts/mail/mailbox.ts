import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Mail, MailTransport, Sender } from './contract.ts';

/** A stored mail with the time at which it was sent (ISO 8601). */
export interface KeptMail extends Omit<Mail, 'to'> {
  to: string;
  from: string;
  at: string;
}

const folder = (dataDir: string) => join(dataDir, 'mail');

/** The embedded form: each mail is a JSON file in DATA_DIR/mail. */
export const mailbox = (dataDir: string, { name, address }: Sender): MailTransport => ({
  async send({ to, ...mail }) {
    const kept: KeptMail = {
      ...mail,
      to: to.address,
      from: name ? `${name} <${address}>` : address,
      at: new Date().toISOString(),
    };
    await mkdir(folder(dataDir), { recursive: true, mode: 0o700 });
    const file = join(folder(dataDir), `${mail.id}.json`);
    // Readers see a whole mail or none.
    await writeFile(`${file}.part`, JSON.stringify(kept), { mode: 0o600 });
    await rename(`${file}.part`, file);
  },
  close: () => undefined,
});

/** To whom a file's mail is: it never changes, and a mailbox has many. */
const recipients = new Map<string, string>();

/** The stored mails, newest first, at most `limit`; only those to the normalized address `to`, if given. */
export async function readMailbox(dataDir: string, { to, limit }: { to?: string | undefined; limit: number }) {
  const names = await readdir(folder(dataDir)).catch(() => []);
  // Ids are time-ordered, so the names sort by age.
  const newestFirst = names.filter((name) => name.endsWith('.json')).sort((a, b) => (a < b ? 1 : -1));
  const mails: KeptMail[] = [];
  for (const name of newestFirst) {
    if (mails.length === limit) break;
    const file = join(folder(dataDir), name);
    if (to !== undefined && (recipients.get(file) ?? to) !== to) continue;
    const mail = JSON.parse(await readFile(file, 'utf8')) as KeptMail;
    recipients.set(file, mail.to);
    if (to === undefined || mail.to === to) mails.push(mail);
  }
  return mails;
}

/** The stored mail of an id. */
export async function readMail(dataDir: string, id: string): Promise<KeptMail | undefined> {
  const name = `${id}.json`;
  const names = await readdir(folder(dataDir)).catch((): string[] => []);
  // Only the name of a file in the folder: an id may be any text.
  return names.includes(name)
    ? (JSON.parse(await readFile(join(folder(dataDir), name), 'utf8')) as KeptMail)
    : undefined;
}
