import { NetworkError, ServiceError, TimeoutError } from 'account-client';
import { headers } from './api.ts';
import { saveFile } from './save-file.ts';

/** The timeout of an export. */
const TIMEOUT_MS = 10 * 60_000;

/**
 * Downloads everything stored about the user as a file, over REST, which streams exports of any size. Rejects like a
 * call of the client.
 */
export async function downloadExport(): Promise<void> {
  saveFile(await fetchExport(AbortSignal.timeout(TIMEOUT_MS)), 'account.json');
}

async function fetchExport(signal: AbortSignal): Promise<Blob> {
  try {
    const response = await fetch('/api/account/export', { headers, signal });
    if (!response.ok) throw await refusalIn(response);
    return await response.blob();
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw signal.aborted ? new TimeoutError('The export took too long') : new NetworkError('The export was cut off');
  }
}

/** Throws if a proxy answered instead of the service. */
async function refusalIn(response: Response): Promise<ServiceError> {
  const refusal = await response.json();
  if (typeof refusal?.code !== 'string') throw new TypeError(`HTTP ${response.status}, not from the service`);
  const retryAfter = response.headers.get('Retry-After');
  return new ServiceError({
    ...refusal,
    status: response.status,
    ...(retryAfter && { retryAfter: Number(retryAfter) }),
  });
}
