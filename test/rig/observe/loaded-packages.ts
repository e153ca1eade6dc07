import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

// Preloaded into the service (`NODE_OPTIONS=--import=…`): at exit it writes the names of the loaded packages to the file
// LOADED_PACKAGES, as a JSON array.
const packages = new Set<string>();

registerHooks({
  load(url, context, next) {
    const name = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1];
    if (name) packages.add(name);
    return next(url, context);
  },
});
process.on('exit', () => writeFileSync(String(process.env['LOADED_PACKAGES']), JSON.stringify([...packages])));
