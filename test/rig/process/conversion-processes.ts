import { readFileSync } from 'node:fs';
import { until } from '../until.ts';
import { signalIfThere } from './process-group.ts';
import { childrenOf } from './process-tree.ts';

/** The ids of the conversion processes that this process has started. Linux only. */
export const conversionProcesses = (): number[] =>
  childrenOf(process.pid).filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('conversion-process'));

/** Ends them, so that tests of the next file in this worker find none. */
export async function endConversionProcesses(): Promise<void> {
  for (const pid of conversionProcesses()) signalIfThere(pid, 'SIGKILL');
  await until(() => conversionProcesses().length === 0, { what: 'the end of the conversion processes' });
}
