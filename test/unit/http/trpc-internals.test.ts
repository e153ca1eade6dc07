import { getTRPCErrorFromUnknown } from '@trpc/server';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { errorShapeOf, isProcedure, procedures, restProcedures } from '../../../routers/procedures.ts';
import { ServiceError } from '../../../server/errors.ts';

// tRPC does not document these: a release may change them, and routers/procedures.ts with them.

test('tRPC’s `_def.procedures` has every procedure by its full name, also of nested and merged routers', () => {
  const names = procedures.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['auth.login', 'users.list', 'users.block', 'health']));
  expect(names.filter((name) => !isProcedure(name))).toEqual([]);
  expect(['auth', 'auth.nothing', '', 'constructor', '__proto__'].filter(isProcedure)).toEqual([]);
});

test('tRPC’s `_def` of a procedure has `type`, `meta`, `inputs` and `output`', () => {
  for (const { name, type, meta, inputs, output } of procedures) {
    expect(type, name).toMatch(/^(query|mutation)$/);
    expect(meta?.summary ?? meta?.openapi?.summary, name).toEqual(expect.any(String));
    expect(
      [output, ...inputs].filter((schema) => !(schema instanceof z.ZodType)),
      name,
    ).toEqual([]);
  }
  const login = procedures.find(({ name }) => name === 'auth.login');
  expect(login).toMatchObject({ type: 'mutation', meta: { openapi: { method: 'POST', path: '/auth/login' } } });
  expect(login?.inputs[0]?.safeParse({ email: 'ada@example.test', password: 'x' }).success).toBe(true);
  expect(login?.inputs[0]?.safeParse({ email: 'ada@example.test' }).success).toBe(false);
  expect(restProcedures.find(({ name }) => name === 'auth.login')?.openapi.path).toBe('/auth/login');
});

test('tRPC’s `_def._config` has the error formatter of the service', () => {
  const error = getTRPCErrorFromUnknown(new ServiceError('EMAIL_TAKEN'));
  expect(errorShapeOf(error, { path: 'auth.register', type: 'mutation' })).toMatchObject({
    message: 'Email already registered',
    data: { code: 'EMAIL_TAKEN', httpStatus: 409, path: 'auth.register' },
  });
});
