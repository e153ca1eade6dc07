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
    setDefaultCACertificates([...getCACertificates('default'), ...certificatesIn(readFileSync(caFile, 'utf8'))]);
  } catch (error) {
    throw new ConfigError([`CA_FILE cannot be used: ${(error as Error).message}`]);
  }
}

function certificatesIn(pem: string): string[] {
  const certificates = pem.match(/-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs);
  if (!certificates) throw new Error('it has no certificate in PEM');
  // Node itself would leave out what it cannot read.
  for (const certificate of certificates) new X509Certificate(certificate);
  return certificates;
}
