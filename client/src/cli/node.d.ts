/** What the command needs of Node; the other files run in browsers, so Node's types are not loaded. */
declare module 'node:fs' {
  export function readFileSync(path: string, encoding: 'utf8'): string;
}
