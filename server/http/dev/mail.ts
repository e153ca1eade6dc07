import Router from '@koa/router';
import { normalizeEmail } from '../../accounts/users/index.ts';
import type { Config } from '../../config/index.ts';
import { ServiceError } from '../../errors.ts';
import { escapeHtml } from '../../lib/escape-html.ts';
import { type KeptMail, readMail, readMailbox } from '../../parts/mail/mailbox.ts';
import { devPage } from './page.ts';

const SHOWN = 200;

/**
 * The mailbox of the embedded mail: a page for people, JSON for programs such as curl, newest first. `?to=` filters by
 * recipient.
 */
export function devMail({ dataDir }: Pick<Config, 'dataDir'>): Router {
  const mailsTo = (to: unknown) =>
    readMailbox(dataDir, { to: typeof to === 'string' ? normalizeEmail(to) : undefined, limit: SHOWN });

  return new Router()
    .get('/dev/mail', async (ctx) => {
      ctx.state['route'] = ctx.path;
      const mails = await mailsTo(ctx.query['to']);
      if (ctx.accepts('json', 'html') === 'html') {
        ctx.type = 'html';
        ctx.body = devPage('Mailbox', list(mails));
      } else {
        ctx.body = mails;
      }
    })
    .get('/dev/mail/:id', async (ctx) => {
      ctx.state['route'] = '/dev/mail/{id}';
      const mail = await readMail(dataDir, ctx.params['id'] ?? '');
      if (!mail) throw new ServiceError('NOT_FOUND', { message: 'Mail not found' });
      ctx.type = 'html';
      ctx.body = devPage(mail.subject, show(mail));
    });
}

const list = (mails: KeptMail[]) =>
  mails.length === 0
    ? '<p>No mail yet. What the service sends appears here; reload to look again.</p>'
    : `<table><thead><tr><th>To</th><th>Subject</th><th>Sent</th></tr></thead><tbody>${mails
        .map(
          ({ id, to, subject, at }) =>
            `<tr><td>${escapeHtml(to)}</td><td><a href="/dev/mail/${id}">${escapeHtml(subject)}</a></td><td><time>${at}</time></td></tr>`,
        )
        .join('')}</tbody></table>`;

/** The mail as a mail program shows it, in an iframe; below it the text part with its links. */
const show = ({ to, from, subject, at, text, html }: KeptMail) => `<p><a href="/dev/mail">All mails</a></p>
<dl><dt>From</dt><dd>${escapeHtml(from)}</dd><dt>To</dt><dd>${escapeHtml(to)}</dd><dt>Subject</dt><dd>${escapeHtml(subject)}</dd><dt>Sent</dt><dd><time>${at}</time></dd></dl>
<iframe title="The mail" sandbox="allow-top-navigation-by-user-activation" srcdoc="${escapeHtml(html.replace('<head>', '<head><base target="_top">'))}"></iframe>
<h2>As text</h2>
<pre>${escapeHtml(text).replace(/https?:\/\/[^\s<]+/g, '<a href="$&">$&</a>')}</pre>`;
