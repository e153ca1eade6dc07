import type { Write } from './template.ts';

/** Translates a device name from `server/activity/devices.ts`. */
export function deviceLabel(device: string, write: Write): string {
  const [, browser, system] = /^(.+) on (.+)$/.exec(device) ?? [];
  if (browser && system) return write('common.device.browserOnSystem', { browser, system });
  return device === 'Unknown device' ? write('common.device.unknown') : device;
}
