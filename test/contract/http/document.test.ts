import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { procedures } from '../../../routers/procedures.ts';
import { schemaNameOf } from '../../../server/events/catalogue.ts';
import { eventTypes } from '../../../server/shared/event-types.ts';
import { paths } from '../rig/callers.ts';
import { documentOf, expectDocumented } from '../rig/document.ts';
import { onBothStacks } from '../rig/scenario.ts';

const rules = {
  'operation-tag-defined': 'error',
  // The service under test is at localhost.
  'no-server-example.com': 'off',
  // A redirect succeeds with 302.
  'operation-2xx-response': 'off',
} as const;

/** Documented in addition to the procedures. */
const probes = ['/livez', '/readyz'];

/** Every REST call in the tests is checked against the document: see callers.ts. */
onBothStacks((stack) => {
  const load = () => documentOf(stack().url);

  test('the document is valid OpenAPI 3.1 without lint findings', async () => {
    const document = await load();
    expect(document.openapi).toMatch(/^3\.1\./);
    const config = await createConfig({ extends: ['recommended'], rules });
    const findings = await lintFromString({ source: JSON.stringify(document), absoluteRef: '/openapi.json', config });
    expect(findings.map(({ ruleId, message, location }) => [ruleId, location[0]?.pointer, message])).toEqual([]);
  });

  test('the document has exactly the paths of the contract', async () => {
    const document = await load();
    const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(documented.sort()).toEqual(
      [...Object.values(paths), ...probes.map((path) => ['GET', path])]
        .map(([method, path]) => `${method} ${path}`)
        .sort(),
    );
  });

  test('a parameter of a query is required unless a call may omit it, and names its default', async () => {
    const document = await load();
    const described = procedures.flatMap(({ name, inputs }) => {
      const [method = '', path = ''] = paths[name] ?? [];
      const fields = Object.assign({}, ...inputs.map((input) => (input instanceof z.ZodObject ? input.shape : {})));
      return (document.paths[path]?.[method.toLowerCase()]?.parameters ?? [])
        .filter((parameter) => parameter.in === 'query' && parameter.name in fields)
        .map((parameter) => ({ parameter, omitted: (fields[parameter.name] as z.ZodType).safeParse(undefined) }));
    });
    expect(described.length).toBeGreaterThan(10);
    for (const { parameter, omitted } of described)
      expect(parameter).toMatchObject({
        name: parameter.name,
        ...(omitted.success ? omitted.data !== undefined && { schema: { default: omitted.data } } : { required: true }),
      });
  });

  test('what creates something succeeds with 201', async () => {
    const document = await load();
    const created = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, { responses }]) => '201' in responses)
        .map(([method]) => `${method.toUpperCase()} ${path}`),
    );
    const creating = [
      'auth.register',
      'passkeys.finishRegistration',
      'keys.create',
      'users.invite',
      'webhooks.create',
      'applications.create',
    ] as const;
    expect(created.sort()).toEqual(creating.map((procedure) => paths[procedure]?.join(' ')).sort());
  });

  test.each(probes)('%s answers as documented, even to a malformed request', async (path) => {
    const { url } = stack();
    for (const [query, status] of [
      ['', 200],
      [`?${'a&'.repeat(100)}`, 400],
    ] as const) {
      const response = await fetch(url + path + query);
      expect(response.status).toBe(status);
      await expectDocumented(url, 'GET', path, { status, body: await response.json() });
    }
  });

  test('every documented error has the standard error body', async () => {
    const { paths: documented, components } = await load();
    const errors = ['Error', 'PresignError', 'UploadError'];
    const events = ['PublicEvent', ...eventTypes.map(schemaNameOf)];
    const users = ['Application', 'Grant', 'ManagedAccount', 'ManagedUser', 'Profile', 'User'];
    const keys = ['AccessKey'];
    const webhooks = ['Webhook', 'WebhookDelivery'];
    expect(Object.keys(components.schemas).sort()).toEqual(
      [...errors, ...events, ...keys, ...users, ...webhooks].sort(),
    );
    for (const [path, methods] of Object.entries(documented)) {
      if (probes.includes(path)) continue;
      for (const [method, { responses }] of Object.entries(methods)) {
        const errors = Object.entries(responses).filter(([status]) => Number(status) >= 400);
        expect(errors.map(([status]) => status)).toEqual(expect.arrayContaining(['500', '503']));
        if (method !== 'get') expect(errors.map(([status]) => status)).toContain('403');
      }
    }
  });
});
