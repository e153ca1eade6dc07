/*
 * The HTML part of a mail. Tables and inline styles, because all mail clients support them; the scheme of the reader is a
 * media query, which those that ignore it show light. All values are escaped.
 */
import type { pageColors } from '../../config/brand-color.ts';
import { escapeHtml } from '../../lib/escape-html.ts';
import type { Language } from '../../shared/texts/languages.ts';

type Scheme = keyof typeof pageColors;

/** The same colours as the pages. */
export type MailColors = Record<Scheme, Record<keyof (typeof pageColors)[Scheme], string>>;

interface HtmlMail {
  language: Language;
  site: string;
  logo: string | undefined;
  home: { url: string } | undefined;
  colors: MailColors;
  content: {
    greeting: string;
    /** Also the heading. */
    subject: string;
    paragraphs: string[];
    button: { label: string; url: string } | undefined;
    /** Introduces the address of the button. */
    buttonFails: string;
    /** Six digits, the words before them, and the line from which browsers fill them in. */
    code: { intro: string; digits: string; autofill: string } | undefined;
    closing: string;
  };
  links: { label: string; url: string }[];
}

const FONT = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;font-size:16px;line-height:1.5";
/** A long word in a heading must not make a mail wider than a phone. */
const WRAP = 'overflow-wrap:anywhere;word-break:break-word';

export function renderHtml({ language, site, logo, home, colors: { light, dark }, content, links }: HtmlMail): string {
  const { greeting, subject, paragraphs, button, buttonFails, code, closing } = content;
  const paragraph = (words: string) => `<p style="margin:0 0 16px">${escapeHtml(words)}</p>`;
  const link = (url: string, style: string, words: string) =>
    `<a href="${escapeHtml(url)}" class="link" style="color:${light.accent};${style}">${escapeHtml(words)}</a>`;
  const small = `font-size:14px;color:${light.muted}`;

  const name = logo
    ? `<img src="${escapeHtml(logo)}" alt="${escapeHtml(site)}" height="40" style="height:40px;max-width:100%;border:0">`
    : `<strong style="font-size:18px">${escapeHtml(site)}</strong>`;
  const product = home
    ? `<a href="${escapeHtml(home.url)}" class="name" style="color:${light.text};text-decoration:none">${name}</a>`
    : name;
  const buttonStyle = `display:inline-block;padding:12px 24px;border-radius:6px;background:${light.accent};color:${light.onAccent};font-weight:600;text-decoration:none`;
  const action = button
    ? `<p style="margin:24px 0"><a href="${escapeHtml(button.url)}" class="button" style="${buttonStyle}">${escapeHtml(button.label)}</a></p>
<p class="muted" style="margin:0 0 16px;${small}">${escapeHtml(buttonFails)}<br>${link(button.url, 'word-break:break-all', button.url)}</p>`
    : '';
  const typed = code
    ? `${paragraph(code.intro)}
<p style="margin:0 0 16px;font-size:28px;font-weight:600;letter-spacing:4px">${escapeHtml(code.digits)}</p>
`
    : '';
  const last = code ? `\n<p class="muted" style="margin:24px 0 0;${small}">${escapeHtml(code.autofill)}</p>` : '';
  const footer =
    links.length > 0
      ? `\n<p class="line" style="margin:24px 0 0;padding:16px 0 0;border-top:1px solid ${light.line};font-size:14px">${links.map(({ label, url }) => link(url, '', label)).join(' · ')}</p>`
      : '';
  return `<!doctype html>
<html lang="${language}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><meta name="supported-color-schemes" content="light dark"><title>${escapeHtml(subject)}</title>
<style>
@media (prefers-color-scheme: dark) {
.ground { background: ${dark.ground} !important }
.surface { background: ${dark.surface} !important; color: ${dark.text} !important }
.name { color: ${dark.text} !important }
.muted { color: ${dark.muted} !important }
.line { border-color: ${dark.line} !important }
.link { color: ${dark.accent} !important }
.button { background: ${dark.accent} !important; color: ${dark.onAccent} !important }
}
</style></head>
<body class="ground" style="margin:0;padding:0;background:${light.ground}">
<table class="ground" role="presentation" width="100%" cellpadding="0" cellspacing="0" style="background:${light.ground}"><tr><td align="center" style="padding:24px 12px">
<table class="surface" role="presentation" width="100%" cellpadding="0" cellspacing="0" style="max-width:560px;background:${light.surface};color:${light.text};border-radius:8px"><tr><td style="padding:32px 24px;${FONT};${WRAP}">
<p style="margin:0 0 24px">${product}</p>
<h1 style="margin:0 0 16px;font-size:22px;line-height:1.3">${escapeHtml(subject)}</h1>
${paragraph(greeting)}
${paragraphs.map(paragraph).join('\n')}
${action}
${typed}<p class="muted" style="margin:0;${small}">${escapeHtml(closing)}</p>${footer}${last}
</td></tr></table>
</td></tr></table>
</body>
</html>
`;
}
