import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

// Preloaded into the service (`NODE_OPTIONS=--import=…`): at its end it writes the names of the packages that it has loaded to
// the file LOADED_PACKAGES, as a JSON array.
const packages = new Set<string>();

registerHooks({
  load(url, context, next) {
    const name = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1];
    if (name) packages.add(name);
    return next(url, context);
  },
});
process.on('exit', () => writeFileSync(String(process.env['LOADED_PACKAGES']), JSON.stringify([...packages])));
