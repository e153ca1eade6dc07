import { createClient, NetworkError } from 'account-client';
import { afterEach, expect, test, vi } from 'vitest';

afterEach(() => vi.unstubAllGlobals());

const fetchOffline = () => Promise.reject(new TypeError('offline'));

test.each([
  ['https://app.example.com/', 'https://accounts.example.com', '; if it runs, its ALLOWED_ORIGINS may not name'],
  ['https://accounts.example.com/dashboard', '', ''],
  ['file:///app/index.html', 'https://accounts.example.com', ''],
  ['app://localhost/index.html', 'https://accounts.example.com', ''],
  ['app://localhost/index.html', '', ''],
])('a page at %s that cannot reach the service at “%s” is told so', async (page, url, hint) => {
  vi.stubGlobal('location', new URL(page));
  const client = createClient({ url, fetch: fetchOffline });
  const error: unknown = await client.profile.get.query().catch((rejected: unknown) => rejected);
  expect(error).toBeInstanceOf(NetworkError);
  expect(String(error)).toContain(`The service could not be reached (offline${hint}`);
  if (hint === '') expect(String(error)).toMatch(/\(offline\)$/);
});
