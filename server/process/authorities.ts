import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { type Config, ConfigError } from '../config/index.ts';

/**
 * Adds the certificate authorities of CA_FILE to every later TLS connection of the process. Throws ConfigError if the
 * file has none.
 */
export function trustAuthorities({ caFile }: Pick<Config, 'caFile'>): void {
  if (caFile === undefined) return;
  try {
    setDefaultCACertificates([...getCACertificates('default'), ...authoritiesIn(caFile).map(String)]);
  } catch (error) {
    throw new ConfigError([`CA_FILE cannot be used: ${(error as Error).message}`]);
  }
}

/** The certificates in a PEM file. Throws if it has no certificate. */
export function authoritiesIn(file: string): X509Certificate[] {
  const certificates = readFileSync(file, 'utf8').match(/-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs);
  if (!certificates) throw new Error('it contains no PEM certificate');
  // Node would silently skip certificates that it cannot parse.
  return certificates.map((pem) => new X509Certificate(pem));
}
