// Builds the client and the account pages after `npm ci`. Without the development packages the build fails, and the
// service serves no pages.
import { spawnSync } from 'node:child_process';

const { status } = spawnSync('npm run build', { shell: true, stdio: 'inherit' });
if (status !== 0) process.stdout.write('The account pages are not built: the service will not serve them.\n');
