import type { ApplicationKind } from '../../entities/index.ts';

/** The loopback addresses of RFC 8252 section 7.3; the name `localhost` may resolve to another machine. */
const loopbackAddresses = ['127.0.0.1', '[::1]'];
/** Schemes that browsers handle themselves, or that carry a script. */
const reserved = /^(?:https?|javascript|data|vbscript|blob|file|about|ftp|ws|wss|mailto|view-source):$/;

/** Where a redirect address may lead, by the kind of application; absent for kinds without redirects. */
const allowed: Partial<Record<ApplicationKind, (url: URL, isProduction: boolean) => boolean>> = {
  web: isWebAddress,
  browser: isWebAddress,
  native: (url) =>
    url.protocol === 'https:'
      ? !isOnThisMachine(url)
      : url.protocol === 'http:'
        ? loopbackAddresses.includes(url.hostname)
        : isPrivateScheme(url.protocol),
};

/** Outside production also a development server on this machine. */
function isWebAddress(url: URL, isProduction: boolean): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && !isProduction && isOnThisMachine(url));
}

const isOnThisMachine = ({ hostname }: URL): boolean =>
  loopbackAddresses.includes(hostname) || hostname === 'localhost';

/** RFC 8252 section 7.1: a domain in reverse order, so that two applications do not claim the same scheme. */
const isPrivateScheme = (protocol: string): boolean => protocol.includes('.') && !reserved.test(protocol);

const messages = {
  not_allowed: 'Applications of this kind have no redirect address',
  required: 'Applications of this kind need a redirect address',
  malformed: 'Must be an address in ASCII without a wildcard',
  credentials: 'Must have no user and password',
  fragment: 'Must have no fragment',
  forbidden_scheme:
    'Must start with https://; for native applications also http://127.0.0.1, http://[::1] or a scheme such as com.example.app:',
} as const;

type RedirectProblem = keyof typeof messages;

function problemOf(text: string, kind: ApplicationKind, isProduction: boolean): RedirectProblem | undefined {
  const url = URL.parse(text);
  if (!url || !/^[!-~]+$/.test(text) || /[*\\]/.test(text)) return 'malformed';
  if (text.includes('#')) return 'fragment';
  if (url.username !== '' || url.password !== '' || /^[^/]*\/\/[^/?]*@/.test(text)) return 'credentials';
  return allowed[kind]?.(url, isProduction) ? undefined : 'forbidden_scheme';
}

interface Redirects {
  uris: readonly string[];
  kind: ApplicationKind;
  isProduction: boolean;
  isRequired: boolean;
}

/** Why an application of this kind may not have these redirect addresses; undefined if it may. */
export function problemOfRedirects({
  uris,
  kind,
  isProduction,
  isRequired,
}: Redirects): { message: string; rule: RedirectProblem } | undefined {
  const rule = allowed[kind]
    ? uris.length === 0 && isRequired
      ? 'required'
      : uris.map((uri) => problemOf(uri, kind, isProduction)).find((problem) => problem !== undefined)
    : uris.length > 0
      ? 'not_allowed'
      : undefined;
  return rule && { rule, message: messages[rule] };
}
