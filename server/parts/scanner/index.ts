import type { Config } from '../../config/index.ts';
import type { Scanner } from './contract.ts';

/** The scanner of SCAN_URL; undefined without it. Loads only the scanner in use; connects at the first file. */
export async function openScanner({ scan }: Pick<Config, 'scan'>): Promise<Scanner | undefined> {
  if (!scan) return undefined;
  const url = new URL(scan.url);
  if (url.protocol === 'clamd:') return (await import('./clamd.ts')).clamdScanner(url);
  return (await import('./http.ts')).httpScanner(url);
}
