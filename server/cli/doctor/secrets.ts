import querystring from 'node:querystring';
import type { Config } from '../../config/index.ts';
import { addressPerHost } from '../../config/values.ts';

/** Takes every secret of the configuration out of a text: errors of libraries and servers may quote one. */
export function withoutSecrets(text: string, config: Config): string {
  // The longest first: another may be a part of it.
  const secrets = secretsIn(config)
    .flatMap((secret) => [secret, encodeURIComponent(secret)])
    .toSorted((a, b) => b.length - a.length);
  return secrets.reduce((safe, secret) => (secret === '' ? safe : safe.replaceAll(secret, '…')), text);
}

/** What is called a secret or a password in the configuration, and the password of each address. */
function secretsIn(value: unknown, name = ''): string[] {
  if (typeof value === 'string') return /secret|password/i.test(name) ? [value] : passwordsIn(value);
  if (Array.isArray(value)) return value.flatMap((entry) => secretsIn(entry, name));
  const entries = value instanceof Map ? [...value] : Object.entries(value ?? {});
  return entries.flatMap(([key, entry]) => secretsIn(entry, key));
}

/** As they are written, and as they are meant. */
function passwordsIn(address: string): string[] {
  return addressPerHost(address).flatMap((url) => {
    const password = URL.parse(url)?.password ?? '';
    return [password, querystring.unescape(password)];
  });
}
