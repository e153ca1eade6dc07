import { type Start, walk } from './walk.js';

declare const process: { env: { START: string } };

let cookie = '';

/** Node keeps no cookies: this does, as far as one session goes. */
const withCookie: typeof fetch = async (input, init) => {
  const response = await fetch(input, { ...init, headers: { ...(init?.headers as object), cookie } });
  for (const set of response.headers.getSetCookie()) cookie = set.split(';')[0] ?? '';
  return response;
};

console.log(JSON.stringify(await walk(JSON.parse(process.env.START) as Start, withCookie)));
