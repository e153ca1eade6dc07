import { lazy } from '../lib/lazy.ts';

/** Longer than the User-Agent of any browser; the library's patterns take quadratic time. */
const MAX_READ = 512;

/** Loaded at the first login. */
const loadParser = lazy(async () => (await import('bowser')).default);

/** The header is untrusted text: only a plain name is shown. */
const plainName = (name: string | undefined): string => /^[\w .-]{1,40}$/.exec(name ?? '')?.[0].trim() ?? '';

/** Caches the devices of recent headers: parsing one takes as long as a database statement. */
const known = new Map<string, string>();
const MAX_KNOWN = 1000;

/** The device of a User-Agent header in words, such as `Firefox on Linux`; at most 100 ASCII characters. */
export async function deviceOf(userAgent: string): Promise<string> {
  const text = userAgent.slice(0, MAX_READ);
  if (text === '') return 'Unknown device';
  const device = known.get(text) ?? (await parsed(text));
  if (known.size >= MAX_KNOWN) known.clear();
  known.set(text, device);
  return device;
}

async function parsed(text: string): Promise<string> {
  const parser = (await loadParser()).getParser(text);
  // Programs other than browsers begin with their name: `curl/8.5.0`.
  const browser = plainName(parser.getBrowserName()) || plainName(text.split('/', 1)[0]);
  return [browser, plainName(parser.getOSName())].filter(Boolean).join(' on ') || 'Unknown device';
}
