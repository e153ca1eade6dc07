import type { Config } from '../../config/index.ts';

/** Where this process listens, for its calls to itself: APP_URL may name what only browsers can reach. */
export function ownAddress({ host, port }: Pick<Config, 'host' | 'port'>): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`;
}
