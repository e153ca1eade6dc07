import { isServiceName } from '../config/index.ts';
import { hashServiceToken } from '../config/service-tokens.ts';
import { newToken } from '../lib/random-token.ts';

/** `npm run service-token NAME`: generates a token for another service, and the configuration line that accepts it. */
const [name = ''] = process.argv.slice(2);

if (isServiceName(name)) {
  const token = newToken();
  process.stdout.write(`The token for ${name}. It is shown only once:

  ${token}

For the configuration of this service (several are separated by commas; the old token works until its entry is gone):

  SERVICE_TOKENS=${name}:${hashServiceToken(token)}
`);
} else {
  process.stderr.write('Usage: npm run service-token NAME, where NAME has only letters, digits, ".", "_" and "-"\n');
  process.exitCode = 1;
}
