import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { Middleware } from 'koa';
import type { Brand } from '../../config/brand.ts';
import type { BrandColors, SchemeColors } from '../../config/brand-color.ts';
import type { Config } from '../../config/index.ts';
import { escapeHtml } from '../../lib/escape-html.ts';
import { lazy } from '../../lib/lazy.ts';
import { designPath, pagePaths, sessionPaths } from '../../shared/page-paths.ts';
import type { ProfileField } from '../../shared/profile-fields.ts';
import { type Language, languages } from '../../shared/texts/languages.ts';
import type { Log } from '../../telemetry/log.ts';
import { type Texts, textsOfParts, writer } from '../../texts/index.ts';
import { languageOfPage } from '../cookies/language.ts';
import { memoryFile } from './memory-file.ts';

const BUILT = join(import.meta.dirname, '../../../client/pages/dist');

const accountPaths: ReadonlySet<string> = new Set(Object.values(pagePaths));
/** Below these paths a missing URL was requested by a program, not by a user. */
const forPrograms = /^\/(?:api|auth|trpc|assets|uploads)\//;

/** The settings of the pages, in the shape of client/pages/settings.ts. */
interface Settings {
  appUrl: string;
  brand: Omit<Brand, 'colors'>;
  /** The allowed origins of `returnTo`: see server/shared/return-to.ts. */
  origins: string[];
  acceptsLoopbackOrigins: boolean;
  /** The names of the identity providers. */
  providers: string[];
  /** The providers at which a user can reauthenticate. */
  reauthenticatingProviders: string[];
  registration: Config['registration'];
  /** Whether a code by mail logs in. */
  emailCodes: boolean;
  /** Whether administrators may act for users. */
  impersonation: boolean;
  /** How long a deleted account can be restored. */
  restorableDays: number;
  /** The lowest score of a new password, if it is estimated. */
  passwordStrength?: number | undefined;
  /** The version of the terms that the pages link to. */
  termsVersion?: string | undefined;
  /** The operator's own fields that users may read. */
  profileFields?: readonly ProfileField[] | undefined;
  /** The URL where mails can be read. */
  mailbox?: string | undefined;
}

/**
 * Serves the account pages from memory: a shell per language and kind of page, the same for every user, and its assets
 * with content hashes in their names. Browsers get the shell also for missing URLs, as 404.
 */
export function pages(
  { brand, ...settings }: Omit<Settings, 'brand'> & { brand: Brand },
  texts: Texts,
  log: Pick<Log, 'warn'>,
  folder = BUILT,
  paths: ReadonlySet<string> = accountPaths,
): Middleware | undefined {
  const html = textOf(join(folder, 'index.html'));
  if (html === undefined) {
    log.warn('the account pages are not built and not served: run `npm run build`, or set PAGES=off');
    return undefined;
  }
  const shells = new Map(
    languages.map((language) => [
      language,
      // Each is created at its first request: a start does not wait for all of them.
      inEachKind((parts) =>
        lazy(async () =>
          memoryFile({
            type: 'html',
            content: Buffer.from(shellOf(html, { settings, brand, language, texts, parts })),
            // A cached shell would name assets that a newer release does not have.
            cacheControl: 'no-store',
          }),
        ),
      ),
    ]),
  );
  const assets = readAssets(join(folder, 'assets'));
  return (ctx, next) => {
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return next();
    const asset = assets.get(ctx.path);
    if (asset) {
      ctx.state['route'] = '/assets/{name}';
      return asset(ctx);
    }
    // A trailing slash leads to the same page.
    const path = ctx.path.replace(/(?<=.)\/$/, '');
    const isPage = paths.has(path);
    if (isPage && path !== ctx.path) return ctx.redirect(path + ctx.search);
    if (!isPage && (forPrograms.test(ctx.path) || ctx.accepts('json', 'html') !== 'html')) return next();
    if (isPage) ctx.state['route'] = ctx.path;
    ctx.status = isPage ? 200 : 404;
    ctx.vary('Accept-Language');
    return shells
      .get(languageOfPage(ctx))
      ?.[kindOf(path)]()
      .then((shell) => shell(ctx));
  };
}

/** The page of all controls, from a build of its own. Anything else is not answered. */
export function designPage(...[settings, texts, log]: Parameters<typeof pages>): Middleware | undefined {
  const serve = pages(settings, texts, log, join(BUILT, 'design'), new Set([designPath]));
  return serve && ((ctx, next) => (/^\/(?:assets\/|dev\/design$)/.test(ctx.path) ? serve(ctx, next) : next()));
}

const readAssets = (folder: string) =>
  new Map(
    readdirSync(folder).map((name) => [
      `/assets/${name}`,
      memoryFile({
        type: extname(name),
        content: readFileSync(join(folder, name)),
        cacheControl: 'public, max-age=31536000, immutable',
      }),
    ]),
  );

/** The parts of the texts that a page shows, by its kind. */
const textParts = {
  entry: ['common', 'entry'],
  dashboard: ['common', 'dashboard'],
  admin: ['common', 'dashboard', 'admin'],
  webhooks: ['common', 'dashboard', 'admin', 'webhooks'],
  applications: ['common', 'dashboard', 'admin', 'apps'],
} as const;

type PageKind = keyof typeof textParts;

const inEachKind = <T>(make: (parts: readonly string[]) => T): Record<PageKind, T> => ({
  entry: make(textParts.entry),
  dashboard: make(textParts.dashboard),
  admin: make(textParts.admin),
  webhooks: make(textParts.webhooks),
  applications: make(textParts.applications),
});

function kindOf(path: string): PageKind {
  if (path === pagePaths.admin || path === designPath) return 'admin';
  if (path === pagePaths.webhooks) return 'webhooks';
  if (path === pagePaths.adminApplications) return 'applications';
  return (sessionPaths as readonly string[]).includes(path) ? 'dashboard' : 'entry';
}

const DEFAULT_TITLE = '<title>Accounts</title>';
/** The colour of the icon, encoded for a data URL. */
const DEFAULT_ACCENT = '%234f46e5';

interface Shell {
  settings: Omit<Settings, 'brand'>;
  brand: Brand;
  language: Language;
  texts: Texts;
  /** The parts of the texts. */
  parts: readonly string[];
}

/**
 * The page with its texts, settings and brand colours. The brand's name is inserted last, because it may be any text.
 */
function shellOf(html: string, { settings, brand: { colors, ...brand }, language, texts, parts }: Shell): string {
  const write = writer(texts, language);
  const inLanguage = html
    .replace('<html lang="en">', `<html lang="${language}">`)
    .replace(/(?<=<noscript>)[^<]*/, () => escapeHtml(write('common.page.needsScript')));
  const coloured = colors ? withColors(inLanguage, colors) : inLanguage;
  return coloured
    .replace('{"settings":0}', () => forScript({ ...settings, brand }))
    .replace('{"texts":0}', () => forScript({ language, texts: textsOfParts(texts[language], parts) }))
    .replace(DEFAULT_TITLE, () => `<title>${escapeHtml(brand.name ?? write('common.page.siteName'))}</title>`);
}

const withColors = (shell: string, { light, dark }: BrandColors): string =>
  shell
    .replace(DEFAULT_ACCENT, encodeURIComponent(light.accent))
    .replace(
      '</head>',
      `<style>${styleOf(light)}@media (prefers-color-scheme:dark){${styleOf(dark)}}</style>\n</head>`,
    );

/** Placed after the style sheet to override its colours. */
const styleOf = ({ accent, accentStrong, onAccent, tint }: SchemeColors): string =>
  `:root{--accent:${accent};--accent-strong:${accentStrong};--on-accent:${onAccent};--tint:${tint}}`;

/** JSON that cannot end its script element. */
const forScript = (data: object) => JSON.stringify(data).replace(/</g, '\\u003c');

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
