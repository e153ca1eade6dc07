/** A cookie as `JSON.stringify(jar)` writes it. */
export interface SavedCookie {
  name: string;
  value: string;
  /** The host that has set it, or the domain that it is for. */
  domain: string;
  /** Whether it goes to sub-domains of `domain` too. */
  subdomains: boolean;
  path: string;
  /** Whether it goes over https only. */
  secure: boolean;
  /** Unix milliseconds; a cookie without lasts as long as the jar, and is not saved. */
  expiresAt: number | null;
}

export interface CookieJarOptions {
  /** What an earlier jar has saved. */
  saved?: readonly SavedCookie[] | undefined;
  /** Called after each answer that has changed the jar: the time to save it. */
  onChange?: (() => void) | undefined;
  /** In place of the global fetch. */
  fetch?: typeof globalThis.fetch | undefined;
}

export interface CookieJar {
  /** For `createClient({ fetch })`: sends the cookies that the service has set, and keeps those that it sets. */
  fetch: typeof globalThis.fetch;
  /** The header Cookie of a request to this address; empty without cookies. */
  header(url: string): string;
  /** Forgets every cookie: the session goes on at the service, unless `auth.logout` has ended it. */
  clear(): void;
  /** The cookies that are to be kept, for `JSON.stringify(jar)`. What is in them logs in: keep it as a password is kept. */
  toJSON(): SavedCookie[];
}

/** RFC 6265 section 6.1: the least that a browser keeps of one. */
const LONGEST_COOKIE = 4096;

/**
 * What a browser does for its pages, for programs: keeps the user of `createClient` logged in, in Node, React Native and
 * command lines. By RFC 6265, for one service and the hosts beside it: it knows no public suffixes, so a jar is for services
 * of one owner. In a browser it has no effect, as pages cannot set the header Cookie.
 */
export function cookieJar({ saved = [], onChange, fetch = globalThis.fetch }: CookieJarOptions = {}): CookieJar {
  const cookies = new Map(saved.map((cookie) => [keyOf(cookie), cookie]));

  const header = (address: string): string => {
    const url = new URL(address);
    return [...cookies.values()]
      .filter((cookie) => !isOver(cookie) && goesTo(cookie, url))
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ');
  };

  const keep = (lines: string[], url: URL): void => {
    const found = lines.flatMap((line) => parseCookie(line, url) ?? []);
    for (const cookie of found) {
      if (isOver(cookie)) cookies.delete(keyOf(cookie));
      else cookies.set(keyOf(cookie), cookie);
    }
    if (found.length > 0) onChange?.();
  };

  return {
    async fetch(input, init) {
      const address = input instanceof Request ? input.url : String(input);
      const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : {}));
      const cookie = header(address);
      if (cookie) headers.set('cookie', cookie);
      // So that a platform with a jar of its own, such as React Native, leaves it alone.
      const response = await fetch(input, { ...init, headers, credentials: 'omit' });
      // After redirects it is the answer of another address.
      keep(linesIn(response.headers), new URL(response.url || address));
      return response;
    },
    header,
    clear() {
      cookies.clear();
      onChange?.();
    },
    toJSON: () => [...cookies.values()].filter((cookie) => cookie.expiresAt !== null && !isOver(cookie)),
  };
}

/** One of the host alone and one of its domain are two, also where both have one name (RFC 6265bis section 5.7). */
const keyOf = ({ name, domain, subdomains, path }: SavedCookie) => `${name} ${domain} ${subdomains} ${path}`;

const isOver = ({ expiresAt }: SavedCookie): boolean => expiresAt !== null && expiresAt <= Date.now();

function goesTo({ domain, subdomains, path, secure }: SavedCookie, url: URL): boolean {
  const isHost = url.hostname === domain || (subdomains && isBelow(domain, url.hostname));
  const isPath = url.pathname === path || url.pathname.startsWith(path.endsWith('/') ? path : `${path}/`);
  return isHost && isPath && (!secure || isSafe(url));
}

/** Browsers take the machine itself for safe, too. */
const isSafe = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || /^(?:localhost|.*\.localhost|127\.[\d.]+|\[::1\])$/.test(hostname);

/** An IP address is below no domain. */
const isBelow = (domain: string, hostname: string): boolean =>
  hostname.endsWith(`.${domain}`) && !/^[\d.]+$|^\[/.test(hostname);

/** Undefined for a line that no browser would keep: malformed, for another host, or secure where the connection is not. */
function parseCookie(line: string, url: URL): SavedCookie | undefined {
  const [pair = '', ...rest] = line.split(';').map((part) => part.trim());
  const [, name, value = ''] = /^([^=\s]+)\s*=\s*(.*)$/.exec(pair) ?? [];
  const attributes = new Map(rest.map((part) => attributeOf(part)));
  const domain = attributes.get('domain')?.replace(/^\./, '').toLowerCase();
  const secure = attributes.has('secure');
  const path = attributes.get('path');
  if (name === undefined || line.length > LONGEST_COOKIE || (secure && !isSafe(url))) return undefined;
  if (domain && domain !== url.hostname && !(domain.includes('.') && isBelow(domain, url.hostname))) return undefined;
  return {
    name,
    value,
    domain: domain || url.hostname,
    subdomains: Boolean(domain),
    path: path?.startsWith('/') ? path : '/',
    secure,
    expiresAt: expiryOf(attributes),
  };
}

function attributeOf(text: string): [name: string, value: string] {
  const [name = '', ...value] = text.split('=');
  return [name.trim().toLowerCase(), value.join('=').trim()];
}

/** Max-Age takes precedence; a date that is none counts as no date. */
function expiryOf(attributes: Map<string, string>): number | null {
  const maxAge = attributes.get('max-age') ?? '';
  if (/^-?\d+$/.test(maxAge)) return Date.now() + Number(maxAge) * 1000;
  const date = Date.parse(attributes.get('expires') ?? '');
  return Number.isNaN(date) ? null : date;
}

/** React Native has all Set-Cookie lines in one; a comma within one stands in a date only. */
const linesIn = (headers: Headers): string[] =>
  headers.getSetCookie?.() ?? (headers.get('set-cookie') ?? '').split(/,(?=\s*[^;,=\s]+=)/).filter(Boolean);
