// Writes the keys of the account service as 1.pem and 2.pem, for HAProxy. Node 18 or later:
//   node jwks-to-pem.mjs https://accounts.example.com/oauth/jwks /etc/haproxy/jwt && systemctl reload haproxy
import { createPublicKey } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [address, directory] = process.argv.slice(2);
const response = await fetch(address);
if (!response.ok) throw new Error(`${address} answers ${response.status}`);
const { keys } = await response.json();
// The first one signs now; the other is the next or the former one.
const [first, second = first] = keys;
for (const [index, jwk] of [first, second].entries()) {
  const file = join(directory, `${index + 1}.pem`);
  const pem = createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
  writeFileSync(`${file}.new`, pem);
  renameSync(`${file}.new`, file);
}
