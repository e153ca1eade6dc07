import { hashServiceToken, newServiceToken } from '../accounts/service-tokens.ts';
import { isServiceName } from '../config/index.ts';

/**
 * `npm run service-token NAME`: makes a token for another service, and the line of our configuration that accepts it.
 */
const [name = ''] = process.argv.slice(2);

if (isServiceName(name)) {
  const token = newServiceToken();
  process.stdout.write(`The token, for ${name} alone; it is shown this once:

  ${token}

For the configuration of this service (several are separated by commas; the old token works until its entry is gone):

  SERVICE_TOKENS=${name}:${hashServiceToken(token)}
`);
} else {
  process.stderr.write('Usage: npm run service-token NAME, where NAME has only letters, digits, ".", "_" and "-"\n');
  process.exitCode = 1;
}
