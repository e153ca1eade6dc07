import { expect } from 'vitest';
import type { Stack } from '../../rig/stack.ts';
import type { Call, CallOptions } from './callers.ts';
import { pendingIn } from './totp-scenario.ts';

const subjects = { login: 'Your code', verification: 'Verify your email' };

/** The code in the `count`th mail with one to an address. */
export async function mailedCode(stack: Stack, to: string, kind: keyof typeof subjects = 'login', count = 1) {
  const mail = await stack.waitForMail({ to, subject: subjects[kind], count });
  const host = new URL(stack.appUrl).hostname.replaceAll('.', '\\.');
  const [, code = ''] = mail.text.trimEnd().match(new RegExp(`\\n@${host} #(\\d{6})$`)) ?? [];
  expect(code).toMatch(/^\d{6}$/);
  return code;
}

/** Six other digits. */
export const otherThan = (code: string): string => String((Number(code) + 1) % 1_000_000).padStart(6, '0');

/** Asks for a code. Returns the cookie of the browser that asked. */
export async function askForCode(call: Call, email: string, options?: CallOptions): Promise<string> {
  const reply = await call('auth.beginEmailCode', { email }, options);
  expect(reply).toMatchObject({ status: 200, data: { success: true } });
  const pending = pendingIn(reply) ?? '';
  expect(pending).toMatch(/^[A-Za-z0-9_-]{43}$/);
  return pending;
}
