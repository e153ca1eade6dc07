import type { Write } from './template.ts';

/** A device as `server/activity/devices.ts` names it, in the words of a language. */
export function deviceLabel(device: string, write: Write): string {
  const [, browser, system] = /^(.+) on (.+)$/.exec(device) ?? [];
  if (browser && system) return write('common.device.browserOnSystem', { browser, system });
  return device === 'Unknown device' ? write('common.device.unknown') : device;
}
