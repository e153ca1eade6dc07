import type { Config } from '../../config/index.ts';

/** The address for calls of this process to itself: APP_URL may be a name that only browsers can resolve. */
export function ownAddress({ host, port }: Pick<Config, 'host' | 'port'>): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`;
}
