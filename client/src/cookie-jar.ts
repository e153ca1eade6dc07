import { isLoopback } from './loopback.ts';

/** A cookie as `JSON.stringify(jar)` writes it. */
export interface SavedCookie {
  name: string;
  value: string;
  /** The host that set it, or its Domain. */
  domain: string;
  /** True if subdomains of `domain` get it too. */
  subdomains: boolean;
  path: string;
  /** True if it is sent over https only. */
  secure: boolean;
  /** Unix milliseconds. A cookie without it lives as long as the jar, and is not saved. */
  expiresAt: number | null;
}

export interface CookieJarOptions {
  /** The saved cookies of an earlier jar. */
  saved?: readonly SavedCookie[] | undefined;
  /** Called after each response that has changed the jar: save it then. */
  onChange?: (() => void) | undefined;
  /** Replaces the global fetch. */
  fetch?: typeof globalThis.fetch | undefined;
}

/**
 * Stores cookies like a browser (RFC 6265), of one service and its neighbouring hosts. It knows no public suffixes: use
 * a jar only for services of one owner.
 */
export interface CookieJar {
  /** For `createClient({ fetch })`: sends the stored cookies, and stores those that the service sets. */
  fetch: typeof globalThis.fetch;
  /** The Cookie header for a request to this URL; empty without cookies. */
  header(url: string): string;
  /** Deletes all cookies. The session at the service stays valid unless `auth.logout` ends it. */
  clear(): void;
  /** The cookies to keep, for `JSON.stringify(jar)`. They log the user in: protect them like a password. */
  toJSON(): SavedCookie[];
}

/** RFC 6265 section 6.1: the minimum that a browser stores per cookie. */
const MAX_COOKIE = 4096;

/**
 * Keeps the user of `createClient` logged in outside browsers: in Node, React Native and command lines. In a browser it
 * has no effect: pages cannot set the Cookie header.
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
      // Prevents a platform with its own jar, such as React Native, from sending its cookies.
      const response = await fetch(input, { ...init, headers, credentials: 'omit' });
      // After redirects, the response comes from another URL.
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

/** A host-only cookie and a domain cookie are two, even with the same name (RFC 6265bis section 5.7). */
const keyOf = ({ name, domain, subdomains, path }: SavedCookie) => `${name} ${domain} ${subdomains} ${path}`;

const isOver = ({ expiresAt }: SavedCookie): boolean => expiresAt !== null && expiresAt <= Date.now();

function goesTo({ domain, subdomains, path, secure }: SavedCookie, url: URL): boolean {
  const isHost = url.hostname === domain || (subdomains && isBelow(domain, url.hostname));
  const isPath = url.pathname === path || url.pathname.startsWith(path.endsWith('/') ? path : `${path}/`);
  return isHost && isPath && (!secure || isSafe(url));
}

/** Browsers treat the machine itself as secure, too. */
const isSafe = ({ protocol, hostname }: URL): boolean => protocol === 'https:' || isLoopback(hostname);

/** An IP address has no parent domain. */
const isBelow = (domain: string, hostname: string): boolean =>
  hostname.endsWith(`.${domain}`) && !/^[\d.]+$|^\[/.test(hostname);

/** Undefined for a line that no browser would store: malformed, for another host, or Secure on an insecure connection. */
function parseCookie(line: string, url: URL): SavedCookie | undefined {
  const [pair = '', ...rest] = line.split(';').map((part) => part.trim());
  const [, name, value = ''] = /^([^=\s]+)\s*=\s*(.*)$/.exec(pair) ?? [];
  const attributes = new Map(rest.map((part) => attributeOf(part)));
  const domain = attributes.get('domain')?.replace(/^\./, '').toLowerCase();
  const secure = attributes.has('secure');
  const path = attributes.get('path');
  if (name === undefined || line.length > MAX_COOKIE || (secure && !isSafe(url))) return undefined;
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

/** Max-Age takes precedence. An invalid date is ignored. */
function expiryOf(attributes: Map<string, string>): number | null {
  const maxAge = attributes.get('max-age') ?? '';
  if (/^-?\d+$/.test(maxAge)) return Date.now() + Number(maxAge) * 1000;
  const date = Date.parse(attributes.get('expires') ?? '');
  return Number.isNaN(date) ? null : date;
}

/** React Native joins all Set-Cookie lines; within one, a comma occurs only in a date. */
const linesIn = (headers: Headers): string[] =>
  headers.getSetCookie?.() ?? (headers.get('set-cookie') ?? '').split(/,(?=\s*[^;,=\s]+=)/).filter(Boolean);
