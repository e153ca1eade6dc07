import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import type { Context, Middleware } from 'koa';
import type { Log } from '../../log.ts';

const BUILT = join(import.meta.dirname, '../../../client/pages/dist');

/** The paths that have a page; client/pages/main.tsx knows which page. */
const paths = new Set([
  '/',
  '/register',
  '/login',
  '/verify-email',
  '/forgot-password',
  '/reset-password',
  '/dashboard',
]);
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

type Encoding = 'br' | 'gzip' | 'identity';

/** One file in memory. */
interface Body {
  type: string;
  /** Compressed at the first request for it, and then kept, so that it does not delay the start. */
  as(encoding: Encoding): Buffer;
}

/**
 * The account pages, from memory: one shell for all of them, the same for every user, and its assets, whose names
 * change with their content. A browser that requests any other missing address gets the shell too, as 404. Undefined,
 * with a line in the log, when the pages were not built.
 */
export function pages(settings: Settings, log: Pick<Log, 'warn'>, folder = BUILT): Middleware | undefined {
  const built = load(settings, folder);
  if (!built) {
    log.warn(
      'the account pages are not built and not served: `npm run build` makes them, PAGES=off makes this go away',
    );
    return undefined;
  }
  const { shell, assets } = built;
  return (ctx, next) => {
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return next();
    const asset = assets.get(ctx.path);
    if (asset) {
      ctx.state['route'] = '/assets/{name}';
      ctx.set('Cache-Control', 'public, max-age=31536000, immutable');
      send(ctx, asset);
      return;
    }
    const isPage = paths.has(ctx.path);
    if (!isPage && (forPrograms.test(ctx.path) || ctx.accepts('json', 'html') !== 'html')) return next();
    if (isPage) ctx.state['route'] = ctx.path;
    // A cached shell would name assets that a newer release does not have.
    ctx.set('Cache-Control', 'no-store');
    ctx.status = isPage ? 200 : 404;
    send(ctx, shell);
  };
}

function send(ctx: Context, { type, as }: Body): void {
  ctx.vary('Accept-Encoding');
  const accepted = ctx.acceptsEncodings('br', 'gzip', 'identity');
  const encoding = accepted === 'br' || accepted === 'gzip' ? accepted : 'identity';
  if (encoding !== 'identity') ctx.set('Content-Encoding', encoding);
  ctx.body = as(encoding);
  ctx.type = type;
}

function load(settings: Settings, folder: string): { shell: Body; assets: Map<string, Body> } | undefined {
  const html = textOf(join(folder, 'index.html'));
  if (html === undefined) return undefined;
  const names = readdirSync(join(folder, 'assets'));
  return {
    shell: body('.html', Buffer.from(html.replace('{}', () => forScript(settings)))),
    assets: new Map(
      names.map((name) => [`/assets/${name}`, body(extname(name), readFileSync(join(folder, 'assets', name)))]),
    ),
  };
}

/** JSON that cannot end its script element, whatever is in it. */
const forScript = (settings: Settings) => JSON.stringify(settings).replace(/</g, '\\u003c');

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** Brotli's quality 9 is within a few percent of the best, in a tenth of its time. */
const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };
const encoders: Record<Encoding, (plain: Buffer) => Buffer> = {
  br: (plain) => brotliCompressSync(plain, brotli),
  gzip: (plain) => gzipSync(plain, { level: 9 }),
  identity: (plain) => plain,
};

function body(type: string, plain: Buffer): Body {
  const made: Partial<Record<Encoding, Buffer>> = {};
  return {
    type,
    as(encoding) {
      made[encoding] ??= encoders[encoding](plain);
      return made[encoding];
    },
  };
}
