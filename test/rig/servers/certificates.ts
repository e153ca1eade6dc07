import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryDirectory } from './custodian.ts';
import { requireBinary } from './debian.ts';

const run = promisify(execFile);
const fresh = ['req', '-newkey', 'rsa:2048', '-noenc', '-subj', '/CN=rig'];

/** A certificate authority of the test; all results are paths of PEM files. */
export interface Authority {
  ca: string;
  /** A server certificate for this host name only. */
  issue(host: string): Promise<{ cert: string; key: string }>;
}

export async function createAuthority(): Promise<Authority> {
  const openssl = await requireBinary({ names: ['openssl'], debianPackage: 'openssl' });
  const directory = temporaryDirectory('certificates');
  const at = (file: string) => join(directory, file);
  const [ca, caKey] = [at('ca.pem'), at('ca.key')];
  await run(openssl, [...fresh, '-x509', '-keyout', caKey, '-out', ca]);
  return {
    ca,
    async issue(host) {
      const [cert, key] = [at(`${host}.pem`), at(`${host}.key`)];
      const [request, names] = [at(`${host}.request`), at(`${host}.names`)];
      await run(openssl, [...fresh, '-keyout', key, '-out', request]);
      await writeFile(names, `subjectAltName=DNS:${host}`);
      const signed = ['x509', '-req', '-CA', ca, '-CAkey', caKey, '-CAcreateserial'];
      await run(openssl, [...signed, '-in', request, '-extfile', names, '-out', cert]);
      return { cert, key };
    },
  };
}
