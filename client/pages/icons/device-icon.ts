import type { IconName } from './icon.tsx';

/** The icon for a device name from `server/activity/devices.ts`: `Safari on iOS`. */
export function deviceIcon(device: string): IconName {
  if (/iPad|tablet/i.test(device)) return 'tablet';
  return /iOS|iPhone|Android/i.test(device) ? 'phone' : 'laptop';
}
