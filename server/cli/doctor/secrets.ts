import querystring from 'node:querystring';
import type { Config } from '../../config/index.ts';
import { addressPerHost } from '../../config/values.ts';

/** Removes every configured secret from a text: errors of libraries and servers may quote one. */
export function withoutSecrets(text: string, config: Config): string {
  // The longest first: another secret may be a part of it.
  const secrets = secretsIn(config)
    .flatMap((secret) => [secret, encodeURIComponent(secret)])
    .toSorted((a, b) => b.length - a.length);
  return secrets.reduce((safe, secret) => (secret === '' ? safe : safe.replaceAll(secret, '…')), text);
}

/** All configured secrets, passwords and tokens, and the password of each URL. */
function secretsIn(value: unknown, name = ''): string[] {
  if (typeof value === 'string') return /secret|password|token/i.test(name) ? [value] : passwordsIn(value);
  if (Array.isArray(value)) return value.flatMap((entry) => secretsIn(entry, name));
  const entries = value instanceof Map ? [...value] : Object.entries(value ?? {});
  return entries.flatMap(([key, entry]) => secretsIn(entry, key));
}

/** Both encoded and decoded. */
function passwordsIn(address: string): string[] {
  return addressPerHost(address).flatMap((url) => {
    const password = URL.parse(url)?.password ?? '';
    return [password, querystring.unescape(password)];
  });
}
