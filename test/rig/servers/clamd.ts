import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { temporaryDirectory } from './custodian.ts';
import { requireBinary } from './debian.ts';
import { freePort } from './port.ts';
import { type PrivateServer, startPrivateServer } from './private-server.ts';

/** The test file of EICAR, in two parts, so that no scanner finds it in this file. */
export const eicar = Buffer.from(
  ['X5O!P%@AP[4\\PZX54(P^)7CC)7}', '$EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*'].join(''),
);

/** What our own signature finds, anywhere in a file. */
export const malware = Buffer.from('malware-of-the-account-service-rig');

/** Signatures of our own: the databases of ClamAV are not on this machine. */
const signatures = [
  `Rig-Malware:0:*:${malware.toString('hex')}`,
  `Eicar-Test-Signature:0:0:${eicar.toString('hex')}`,
].join('\n');

/** ClamAV's clamd with signatures of our own, on 127.0.0.1. Debian's package is installed if it is missing. */
export async function startClamd({ streamMaxLength = '100M' } = {}): Promise<PrivateServer> {
  const file = await requireBinary({ names: ['clamd'], debianPackage: 'clamav-daemon' });
  const directory = temporaryDirectory('clamd');
  const port = await freePort();
  writeFileSync(join(directory, 'rig.ndb'), `${signatures}\n`);
  const configuration = join(directory, 'clamd.conf');
  const settings = {
    DatabaseDirectory: directory,
    TCPSocket: port,
    TCPAddr: '127.0.0.1',
    StreamMaxLength: streamMaxLength,
    Foreground: 'yes',
    OfficialDatabaseOnly: 'no',
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} ${value}\n`);
  writeFileSync(configuration, lines.join(''));
  return startPrivateServer({
    name: 'clamd',
    url: `clamd://127.0.0.1:${port}`,
    port,
    directory,
    command: { file, args: ['--config-file', configuration], env: { LC_ALL: 'C' } },
    answers: async () => (await textOf(connect(port, '127.0.0.1').end('PING'))).includes('PONG'),
  });
}
