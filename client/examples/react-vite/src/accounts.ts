import { createClient, isNetworkError, isServiceError, isTimeoutError } from 'account-client';

const url: string = import.meta.env['VITE_ACCOUNTS_URL'] ?? 'http://localhost:3000';

/** The session is a cookie: the browser keeps it, and sends it along. */
export const accounts = createClient({ url });

/** A page of the service that leads back here: all ways to log in, the second step of a login, a forgotten password. */
export const pageOfService = (path: '/login' | '/second-factor' | '/forgot-password'): string =>
  `${url}${path}?${new URLSearchParams({ returnTo: location.href })}`;

export interface Refusal {
  message: string;
  /** By the name of the field. */
  fields: Record<string, string>;
}

/** What users read of a failed call. Any other error is a fault of this page. */
export function refusalIn(error: unknown): Refusal {
  if (isServiceError(error)) {
    const entries = Object.entries(error.details ?? {}).map(([field, broken]) => [field, broken?.message ?? '']);
    return { message: error.message, fields: Object.fromEntries(entries) };
  }
  if (isNetworkError(error) || isTimeoutError(error)) return { message: error.message, fields: {} };
  throw error;
}
