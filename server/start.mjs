// What `npm start` runs. It keeps compiled code for the next start; as plain JavaScript it needs no compilation itself.
import { enableCompileCache } from 'node:module';

enableCompileCache(process.env.NODE_COMPILE_CACHE ?? 'node_modules/.cache/compiled');
await import('./main.ts');
