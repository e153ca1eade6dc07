import { type Start, walk } from './walk.js';

declare global {
  interface Window {
    walk(start: Start): ReturnType<typeof walk>;
  }
}

window.walk = (start) => walk(start, (...request) => fetch(...request));
