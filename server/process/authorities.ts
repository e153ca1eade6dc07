import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { type Config, ConfigError } from '../config/index.ts';

/**
 * From now on every TLS connection, whichever part makes it, also trusts the certificate authorities in CA_FILE. Throws
 * ConfigError where there are none.
 */
export function trustAuthorities({ caFile }: Pick<Config, 'caFile'>): void {
  if (caFile === undefined) return;
  try {
    setDefaultCACertificates([...getCACertificates('default'), ...authoritiesIn(caFile).map(String)]);
  } catch (error) {
    throw new ConfigError([`CA_FILE cannot be used: ${(error as Error).message}`]);
  }
}

/** The certificates in a PEM file, of which there is at least one. */
export function authoritiesIn(file: string): X509Certificate[] {
  const certificates = readFileSync(file, 'utf8').match(/-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs);
  if (!certificates) throw new Error('it has no certificate in PEM');
  // Node itself would leave out what it cannot read.
  return certificates.map((pem) => new X509Certificate(pem));
}
