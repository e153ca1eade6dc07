import { expect, test } from 'vitest';
import { allowedRooms, circleIn, problemOfImport, problemOfPackage, roomNames } from '../../scripts/rooms.ts';

/** A forbidden import for each room. */
const forbidden: Record<string, [file: string, target: string]> = {
  entities: ['entities/user.ts', 'server/errors.ts'],
  'server/errors.ts': ['server/errors.ts', 'server/lib/lazy.ts'],
  'server/secrets.ts': ['server/secrets.ts', 'server/config/index.ts'],
  'server/version.ts': ['server/version.ts', 'server/lib/lazy.ts'],
  'server/lib': ['server/lib/lazy.ts', 'server/errors.ts'],
  'server/shared': ['server/shared/origins.ts', 'server/config/index.ts'],
  'server/config': ['server/config/index.ts', 'server/telemetry/log.ts'],
  'server/telemetry': ['server/telemetry/log.ts', 'server/parts/database/contract.ts'],
  'server/texts': ['server/texts/index.ts', 'server/accounts/mail/index.ts'],
  'server/process': ['server/process/banner.ts', 'server/http/app.ts'],
  'server/parts': ['server/parts/mail/index.ts', 'server/accounts/users/index.ts'],
  'server/workers': ['server/workers/worker.ts', 'server/parts/database/index.ts'],
  'server/challenge': ['server/challenge/index.ts', 'server/accounts/index.ts'],
  'server/limits': ['server/limits/index.ts', 'server/accounts/users/index.ts'],
  'server/activity': ['server/activity/index.ts', 'server/accounts/users/index.ts'],
  'server/events': ['server/events/index.ts', 'server/accounts/users/index.ts'],
  'server/uploads': ['server/uploads/index.ts', 'server/accounts/users/index.ts'],
  'server/accounts/users': ['server/accounts/users/users.ts', 'server/accounts/mail/index.ts'],
  'server/accounts/mail': ['server/accounts/mail/outbox.ts', 'server/accounts/users/users.ts'],
  'server/accounts/sessions': ['server/accounts/sessions/sessions.ts', 'server/accounts/credentials/index.ts'],
  'server/accounts/data': ['server/accounts/data/export.ts', 'server/accounts/sessions/index.ts'],
  'server/accounts/credentials': ['server/accounts/credentials/totp/totp.ts', 'server/accounts/login/index.ts'],
  'server/accounts/login': ['server/accounts/login/steps.ts', 'server/accounts/lifecycle/index.ts'],
  'server/accounts/lifecycle': ['server/accounts/lifecycle/deletion.ts', 'server/accounts/providers/index.ts'],
  'server/accounts/providers': ['server/accounts/providers/login.ts', 'server/accounts/lifecycle/index.ts'],
  'server/accounts/administration': [
    'server/accounts/administration/administration.ts',
    'server/accounts/lifecycle/deletion.ts',
  ],
  'server/accounts': ['server/accounts/index.ts', 'server/accounts/users/users.ts'],
  'server/webhooks': ['server/webhooks/index.ts', 'server/parts/webhook-sender/index.ts'],
  'server/access': ['server/access/keys.ts', 'server/accounts/users/users.ts'],
  'server/oauth': ['server/oauth/index.ts', 'server/webhooks/index.ts'],
  'server/applications': ['server/applications/index.ts', 'server/webhooks/index.ts'],
  routers: ['routers/auth/auth.ts', 'server/parts/database/contract.ts'],
  'server/http': ['server/http/app.ts', 'server/accounts/users/users.ts'],
  'server/cli': ['server/cli/user.ts', 'test/rig/stack.ts'],
  server: ['server/main.ts', 'routers/index.ts'],
  'client/pages': ['client/pages/main.tsx', 'routers/index.ts'],
};

test.each(roomNames)('%s refuses an import outside its row', (room) => {
  const [file, target] = forbidden[room] ?? ['', ''];
  expect(problemOfImport(file, target)).toBe(`${file}: ${room} must not import ${target}`);
});

test('a room may import its own files and those of its row', () => {
  expect(problemOfImport('server/accounts/mail/tokens/use.ts', 'server/accounts/mail/kinds.ts')).toBeUndefined();
  expect(problemOfImport('server/accounts/login/steps.ts', 'server/accounts/sessions/index.ts')).toBeUndefined();
  expect(problemOfImport('server/uploads/index.ts', 'server/parts/object-storage/contract.ts')).toBeUndefined();
});

test.each(['server/cli/user.ts', 'server/service.ts'])('%s imports of a room of accounts only its index', (file) => {
  expect(problemOfImport(file, 'server/accounts/users/index.ts')).toBeUndefined();
  expect(problemOfImport(file, 'server/accounts/users/users.ts')).toBeDefined();
});

test('the rooms that a row allows are those of the files it names', () => {
  const files = ['entities/user.ts', 'server/lib/lazy.ts', 'server/parts/mail/index.ts', 'server/oauth/index.ts'];
  expect(allowedRooms(files)['server/parts']).toEqual(['entities', 'server/lib']);
});

test('a circle of rooms is found', () => {
  expect(circleIn({ a: ['b'], b: ['c', 'd'], c: [], d: ['b'] })).toEqual(['b', 'd', 'b']);
  expect(circleIn({ a: ['b', 'c'], b: ['c'], c: [] })).toBeUndefined();
});

test('rules import no HTTP and no driver', () => {
  expect(problemOfPackage('server/accounts/mail/outbox.ts', 'koa')).toBeDefined();
  expect(problemOfPackage('server/uploads/index.ts', 'minio')).toBeDefined();
  expect(problemOfPackage('server/parts/mail/smtp.ts', '@trpc/server')).toBeDefined();
  expect(problemOfPackage('server/parts/mail/smtp.ts', 'nodemailer')).toBeUndefined();
});
