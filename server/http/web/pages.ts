import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { Middleware } from 'koa';
import type { Log } from '../../log.ts';
import { pagePaths } from '../../page-paths.ts';
import { memoryFile } from './memory-file.ts';

const BUILT = join(import.meta.dirname, '../../../client/pages/dist');

const paths = new Set<string>(Object.values(pagePaths));
/** Below these paths a missing address was requested by a program, not by a user. */
const forPrograms = /^\/(?:api|auth|trpc|assets|uploads)\//;

/** The settings for the pages, in the shape of client/pages/settings.ts. */
interface Settings {
  appUrl: string;
  /** The names of the identity providers. */
  providers: string[];
  /** Where mails can be read. */
  mailbox?: string | undefined;
}

/**
 * The account pages, from memory: one shell for all of them, the same for every user, and its assets, whose names
 * change with their content. A browser that requests any other missing address gets the shell too, as 404. Undefined,
 * with a line in the log, when the pages were not built.
 */
export function pages(settings: Settings, log: Pick<Log, 'warn'>, folder = BUILT): Middleware | undefined {
  const html = textOf(join(folder, 'index.html'));
  if (html === undefined) {
    log.warn(
      'the account pages are not built and not served: `npm run build` makes them, PAGES=off makes this go away',
    );
    return undefined;
  }
  const shell = memoryFile({
    type: 'html',
    content: Buffer.from(html.replace('{}', () => forScript(settings))),
    // A cached shell would name assets that a newer release does not have.
    cacheControl: 'no-store',
  });
  const assets = readAssets(join(folder, 'assets'));
  return (ctx, next) => {
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return next();
    const asset = assets.get(ctx.path);
    if (asset) {
      ctx.state['route'] = '/assets/{name}';
      return asset(ctx);
    }
    const isPage = paths.has(ctx.path);
    if (!isPage && (forPrograms.test(ctx.path) || ctx.accepts('json', 'html') !== 'html')) return next();
    if (isPage) ctx.state['route'] = ctx.path;
    ctx.status = isPage ? 200 : 404;
    return shell(ctx);
  };
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

/** JSON that cannot end its script element, whatever is in it. */
const forScript = (settings: Settings) => JSON.stringify(settings).replace(/</g, '\\u003c');

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
