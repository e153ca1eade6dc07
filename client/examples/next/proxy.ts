import { type NextRequest, NextResponse } from 'next/server';
import { accounts } from './accounts.ts';

/** Server components cannot set cookies: here a renewed session gets its cookie, before they ask for it. */
export const proxy = (request: NextRequest): Promise<Response> => accounts.answer(request, () => NextResponse.next());

export const config = { matcher: '/((?!_next/).*)' };
