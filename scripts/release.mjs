// Part of `npm version`: gives "Unreleased" in CHANGELOG.md the version and date, and the client the same version.
import { execSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const heading = /^## Unreleased$/m;
const changelog = readFileSync('CHANGELOG.md', 'utf8');

if (!heading.test(changelog)) {
  process.stderr.write('CHANGELOG.md has nothing unreleased.\n');
  process.exitCode = 1;
} else if (process.argv[2] !== 'check') {
  const version = process.env.npm_package_version;
  writeFileSync('CHANGELOG.md', changelog.replace(heading, `## ${version} (${new Date().toISOString().slice(0, 10)})`));
  execSync(`npm version ${version} -w client --no-git-tag-version --allow-same-version`, { stdio: 'inherit' });
  execSync('git add CHANGELOG.md client/package.json package-lock.json', { stdio: 'inherit' });
}
