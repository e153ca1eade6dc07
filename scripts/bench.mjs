// `npm run bench`: installs the bench's own packages if they are missing or out of date.
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';

const timeOf = (file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
const run = (command) => spawnSync(command, { shell: true, stdio: 'inherit' }).status ?? 1;

const isInstalled =
  timeOf('test/bench/node_modules/.package-lock.json') > timeOf('test/bench/package-lock.json') ||
  run('npm ci --prefix test/bench') === 0;
process.exitCode = isInstalled ? run(['node', 'test/bench/index.ts', ...process.argv.slice(2)].join(' ')) : 1;
