import { createClient, isNetworkError, isServiceError, isTimeoutError } from 'account-client';

const url: string = import.meta.env['VITE_ACCOUNTS_URL'] ?? 'http://localhost:3000';

/** The browser keeps the session cookie and sends it with every call. */
export const accounts = createClient({ url });

/** A page of the service that returns here; it has all login methods, the second step and the password reset. */
export const pageOfService = (path: '/login' | '/second-factor' | '/forgot-password'): string =>
  `${url}${path}?${new URLSearchParams({ returnTo: location.href })}`;

export interface Refusal {
  message: string;
  /** Messages by field name. */
  fields: Record<string, string>;
}

/** The message for users about a failed call. Rethrows any other error, which is a bug of this page. */
export function refusalIn(error: unknown): Refusal {
  if (isServiceError(error)) {
    const entries = Object.entries(error.details ?? {}).map(([field, broken]) => [field, broken?.message ?? '']);
    return { message: error.message, fields: Object.fromEntries(entries) };
  }
  if (isNetworkError(error) || isTimeoutError(error)) return { message: error.message, fields: {} };
  throw error;
}
