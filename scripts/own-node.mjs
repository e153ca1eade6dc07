// Runs after npm has changed node_modules: npm may remove the link to the Node in the packages when it removes others.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const link = process.platform === 'win32' ? 'node_modules/.bin/node.cmd' : 'node_modules/.bin/node';
if (!existsSync(link)) {
  const { status } = spawnSync('npm rebuild --ignore-scripts', { shell: true, stdio: 'inherit' });
  process.exitCode = status ?? 1;
}
