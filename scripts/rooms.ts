/**
 * Which room may import which (docs/architecture.md). A file belongs to the room with the longest matching path. It may
 * import its own room and the files in its row; other rooms of server/accounts only through their index.ts.
 */
const BASE = [
  'server/errors.ts',
  'server/version.ts',
  'server/lib/*',
  'server/shared/**',
  'server/config/*',
  'server/telemetry/*',
];
const CONTRACTS = 'server/parts/*/contract.ts';
const RULES = [...BASE, CONTRACTS, 'server/secrets.ts', 'server/activity/*', 'server/workers/*', 'entities/*'];
const accountRoom = (...rooms: string[]) => [
  ...RULES,
  'server/limits/index.ts',
  'server/texts/*',
  ...rooms.map((room) => `server/accounts/${room}/index.ts`),
];

/** What callers of the rules may import of them, besides the rooms of server/accounts. */
const DOORS = [
  'server/access/index.ts',
  'server/accounts/index.ts',
  'server/applications/index.ts',
  'server/challenge/index.ts',
  'server/events/*',
  'server/oauth/index.ts',
  'server/uploads/index.ts',
  'server/webhooks/index.ts',
];

const HTTP = ['koa', '@koa/', '@trpc/'];
const DRIVERS = ['ioredis', 'minio', '@smithy/', 'nodemailer', 'openid-client', 'mysql2', '@mikro-orm/mysql'];

interface Room {
  /** Globs of the files that it may import besides its own. */
  imports: string[];
  /** Prefixes of packages that it must not import. */
  without?: string[];
}

const rooms: Record<string, Room> = {
  entities: { imports: ['server/shared/method-names.ts'], without: HTTP },
  'server/errors.ts': { imports: [] },
  'server/secrets.ts': { imports: [] },
  'server/version.ts': { imports: [] },
  'server/lib': { imports: [] },
  'server/shared': { imports: [] },
  'server/config': { imports: ['server/lib/*', 'server/shared/**'] },
  'server/telemetry': { imports: ['server/lib/*', 'server/version.ts', 'server/config/index.ts'] },
  'server/texts': { imports: ['server/config/index.ts', 'server/shared/**'] },
  'server/process': { imports: [...BASE, 'server/secrets.ts'] },
  'server/parts': { imports: [...BASE, 'server/secrets.ts', 'entities/**'], without: HTTP },
  'server/workers': { imports: [...BASE, CONTRACTS], without: [...HTTP, ...DRIVERS] },
  'server/limits': { imports: [...BASE, CONTRACTS], without: [...HTTP, ...DRIVERS] },
  'server/challenge': {
    imports: [...BASE, CONTRACTS, 'server/secrets.ts', 'server/limits/index.ts'],
    without: [...HTTP, ...DRIVERS],
  },
  'server/activity': {
    imports: [...BASE, CONTRACTS, 'server/workers/*', 'entities/*'],
    without: [...HTTP, ...DRIVERS],
  },
  'server/events': { imports: RULES, without: [...HTTP, ...DRIVERS] },
  'server/uploads': { imports: RULES, without: [...HTTP, ...DRIVERS] },
  'server/accounts/users': { imports: accountRoom(), without: [...HTTP, ...DRIVERS] },
  'server/accounts/mail': { imports: accountRoom('users'), without: [...HTTP, ...DRIVERS] },
  'server/accounts/sessions': { imports: accountRoom('users', 'mail'), without: [...HTTP, ...DRIVERS] },
  'server/accounts/data': { imports: accountRoom('users', 'mail'), without: [...HTTP, ...DRIVERS] },
  'server/accounts/credentials': { imports: accountRoom('users', 'mail', 'sessions'), without: [...HTTP, ...DRIVERS] },
  'server/accounts/login': {
    imports: accountRoom('users', 'sessions', 'credentials'),
    without: [...HTTP, ...DRIVERS],
  },
  'server/accounts/lifecycle': {
    imports: accountRoom('users', 'mail', 'sessions', 'credentials', 'login'),
    without: [...HTTP, ...DRIVERS],
  },
  'server/accounts/providers': {
    imports: accountRoom('users', 'mail', 'sessions', 'credentials', 'login'),
    without: [...HTTP, ...DRIVERS],
  },
  'server/accounts/administration': {
    imports: accountRoom('users', 'mail', 'sessions', 'credentials', 'lifecycle', 'providers'),
    without: [...HTTP, ...DRIVERS],
  },
  'server/accounts': { imports: accountRoom('*'), without: [...HTTP, ...DRIVERS] },
  'server/webhooks': {
    imports: [...accountRoom('users', 'sessions'), 'server/accounts/index.ts', 'server/events/*'],
    without: [...HTTP, ...DRIVERS],
  },
  'server/access': {
    imports: [...accountRoom('users', 'mail', 'sessions'), 'server/accounts/index.ts'],
    without: [...HTTP, ...DRIVERS],
  },
  'server/applications': {
    imports: accountRoom('users', 'sessions'),
    without: [...HTTP, ...DRIVERS],
  },
  'server/oauth': {
    imports: [
      ...accountRoom('users', 'sessions'),
      'server/accounts/index.ts',
      'server/applications/index.ts',
      'server/events/index.ts',
    ],
    without: [...HTTP, ...DRIVERS],
  },
  routers: {
    imports: [...accountRoom('*'), ...DOORS, 'package.json'].filter(
      (glob) => glob !== CONTRACTS && glob !== 'server/workers/*',
    ),
    without: ['koa', '@koa/', ...DRIVERS],
  },
  'server/http': {
    imports: [...accountRoom('*'), ...DOORS, 'server/parts/**', 'routers/**', 'package.json'].filter(
      (glob) => glob !== 'server/workers/*',
    ),
  },
  'server/cli': {
    imports: [
      ...accountRoom('*'),
      ...DOORS,
      'server/assemble.ts',
      'server/parts/**',
      'server/process/*',
      'server/uploads/*',
      'routers/schemas/*',
    ],
  },
  server: {
    imports: [...accountRoom('*'), ...DOORS, 'server/http/**', 'server/parts/**', 'server/process/*'],
  },
  'client/pages': { imports: ['client/**', 'server/shared/**'] },
};

const patternOf = (glob: string): RegExp =>
  new RegExp(`^${glob.replaceAll('.', '\\.').replaceAll('**', '§').replaceAll('*', '[^/]*').replaceAll('§', '.*')}$`);

const roomOf = (file: string): string | undefined =>
  Object.keys(rooms)
    .filter((room) => file === room || file.startsWith(`${room}/`))
    .toSorted((a, b) => b.length - a.length)[0];

/** Why a file may not import another, both paths from the top level; undefined if it may. */
export function problemOfImport(file: string, target: string): string | undefined {
  const room = roomOf(file);
  if (room === undefined || roomOf(target) === room) return undefined;
  if (rooms[room]?.imports.some((glob) => patternOf(glob).test(target))) return undefined;
  return `${file}: ${room} must not import ${target}`;
}

/** Why a file may not import a package; undefined if it may. */
export function problemOfPackage(file: string, name: string): string | undefined {
  const room = roomOf(file);
  const isForbidden = room && rooms[room]?.without?.some((start) => name === start || name.startsWith(start));
  return isForbidden ? `${file}: ${room} must not import ${name}` : undefined;
}

/** Each room with the other rooms whose files its row allows. */
export function allowedRooms(files: readonly string[]): Record<string, string[]> {
  const listed = files.map((file) => ({ file, room: roomOf(file) }));
  const allowedIn = ([name, { imports }]: [string, Room]): [string, string[]] => {
    const patterns = [...new Set(imports)].map(patternOf);
    const allowed = listed.filter(({ file }) => patterns.some((pattern) => pattern.test(file)));
    return [name, [...new Set(allowed.flatMap(({ room }) => room ?? []))].filter((room) => room !== name)];
  };
  return Object.fromEntries(Object.entries(rooms).map(allowedIn));
}

/** Rooms that import one another in a circle, the first again as the last; undefined if there is none. */
export function circleIn(allowed: Readonly<Record<string, readonly string[]>>): string[] | undefined {
  const withoutCircle = new Set<string>();
  const circleFrom = (room: string, path: string[]): string[] | undefined => {
    if (withoutCircle.has(room)) return undefined;
    if (path.includes(room)) return [...path.slice(path.indexOf(room)), room];
    for (const next of allowed[room] ?? []) {
      const circle = circleFrom(next, [...path, room]);
      if (circle) return circle;
    }
    withoutCircle.add(room);
    return undefined;
  };
  for (const room of Object.keys(allowed)) {
    const circle = circleFrom(room, []);
    if (circle) return circle;
  }
  return undefined;
}

export const roomNames = Object.keys(rooms);
