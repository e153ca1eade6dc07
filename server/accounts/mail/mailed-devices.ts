/**
 * An attacker controls the User-Agent header of the login that a mail warns about. So mails name devices only by these
 * lists; any other device is unknown.
 */
const programs = [
  ...['Android Browser', 'Brave', 'Chrome', 'Chromium', 'DuckDuckGo', 'Electron', 'Epiphany', 'Firefox', 'Focus'],
  ...[
    'Google Search',
    'Internet Explorer',
    'LibreWolf',
    'Microsoft Edge',
    'MZ Browser',
    'NAVER Whale Browser',
    'Opera',
  ],
  ...['Pale Moon', 'Puffin', 'QQ Browser', 'Safari', 'Samsung Internet for Android', 'SeaMonkey', 'Sogou Browser'],
  ...['UC Browser', 'Vivaldi', 'Vivo Browser', 'WeChat', 'Yandex Browser'],
  ...['Go-http-client', 'HTTPie', 'PostmanRuntime', 'Wget', 'axios', 'curl', 'node', 'okhttp', 'python-requests'],
];
const systems = [
  ...[
    'Android',
    'Chrome OS',
    'HarmonyOS',
    'Linux',
    'PlayStation 4',
    'Tizen',
    'WebOS',
    'Windows',
    'Windows Phone',
    'iOS',
  ],
  'macOS',
];

const devices = new Set([
  ...programs,
  ...systems,
  ...programs.flatMap((program) => systems.map((system) => `${program} on ${system}`)),
]);

/** The name in mails of a device from `server/activity/devices.ts`. */
export const mailedDevice = (device: string): string => (devices.has(device) ? device : 'Unknown device');
