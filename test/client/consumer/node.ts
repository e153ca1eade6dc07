import { cookieJar } from 'account-client';
import { type Start, walk } from './walk.js';

declare const process: { env: { START: string } };

const { fetch } = cookieJar();

console.log(JSON.stringify(await walk(JSON.parse(process.env.START) as Start, fetch, fetch)));
