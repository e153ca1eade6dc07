import { expect, test } from 'vitest';
import { asPublicUsers, operationAsPublicUsers } from '../../../server/http/api/public-users.ts';

/** What the document says of the public reads of users, by PUBLIC_USERS. */
const read = {
  method: 'GET',
  path: '/api/users',
  summary: '',
  tags: [],
  protect: false,
  isPublicRead: true,
  errors: ['RATE_LIMITED'],
} as const;
const openapi = { ...read, tags: [], errors: [...read.errors] };

test.each([
  ['full', openapi],
  ['without-email', openapi],
  ['session', { ...openapi, protect: true }],
  ['off', { ...openapi, errors: ['RATE_LIMITED', 'NOT_FOUND', 'OTHER_USER'] }],
] as const)('the contract for %s', (publicUsers, expected) => {
  expect(asPublicUsers(openapi, publicUsers)).toEqual(expected);
  const { isPublicRead: _, ...other } = openapi;
  expect(asPublicUsers(other, publicUsers)).toEqual(other);
});

const named = {
  User: {
    properties: { id: {}, email: {}, friend: { $ref: '#/components/schemas/Friend' } },
    required: ['id', 'email'],
  },
  Friend: { properties: { email: {}, name: {} }, required: ['email', 'name'] },
};
const refTo = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const operation = {
  operationId: 'users',
  responses: { 200: { schema: { properties: { data: { items: refTo('User') } } } }, 404: { schema: refTo('Error') } },
};
const security = [{ session: [] }];

test.each([
  ['full', operation],
  ['session', { ...operation, security }],
  ['off', { ...operation, security }],
] as const)('the operation for %s', (publicUsers, expected) => {
  expect(operationAsPublicUsers(operation, publicUsers, { named, security })).toEqual(expected);
});

test('without addresses no schema of the answer has `email`, at any depth', () => {
  expect(operationAsPublicUsers(operation, 'without-email', { named, security })).toEqual({
    operationId: 'users',
    responses: {
      200: {
        schema: {
          properties: {
            data: {
              items: {
                properties: { id: {}, friend: { properties: { name: {} }, required: ['name'] } },
                required: ['id'],
              },
            },
          },
        },
      },
      404: { schema: refTo('Error') },
    },
  });
  // The schemas of others stay.
  expect(named.User.required).toEqual(['id', 'email']);
});
