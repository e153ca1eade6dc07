import type { Handle } from '@sveltejs/kit/hooks';
import { accounts } from './accounts.server.ts';

export const handle: Handle = ({ event, resolve }) => accounts.answer(event.request, () => resolve(event));
