import { buildHashList } from './breached-passwords/build.ts';
import { explain } from './failure.ts';

/** `npm run breached-passwords -- build [FILE] < LIST`: makes the file for BREACHED_PASSWORDS_FILE. */
const usage = `Usage: npm run breached-passwords -- build [FILE] < LIST
  makes FILE (breached-passwords.bin) from a list of SHA-1 hashes sorted by hash, a line each: HASH or HASH:COUNT,
  as Have I Been Pwned offers it. 4 bytes a hash and 6 MB.
`;

const [command, path = 'breached-passwords.bin', ...rest] = process.argv.slice(2);

if (command !== 'build' || rest.length > 0) {
  process.stderr.write(usage);
  process.exitCode = 2;
} else {
  try {
    const count = await buildHashList(process.stdin, path);
    process.stdout.write(`${path} has ${count} hashes. BREACHED_PASSWORDS_FILE=${path} uses it.\n`);
  } catch (error) {
    process.stderr.write(`${explain(error)}\n`);
    process.exitCode = 1;
  }
}
