import type { IncomingMessage } from 'node:http';

/** A library builds addresses from the request: they follow APP_URL, whatever the Host. */
export function beAt(appUrl: string, { headers }: IncomingMessage): void {
  const { host, protocol } = new URL(appUrl);
  delete headers['x-forwarded-host'];
  headers.host = host;
  headers['x-forwarded-proto'] = protocol.slice(0, -1);
}
