import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect, test } from 'vitest';
import { paths } from './callers.ts';
import { documentOf, expectDocumented } from './document.ts';
import { onBothStacks } from './scenario.ts';

const rules = {
  'operation-tag-defined': 'error',
  // The service under test is at localhost.
  'no-server-example.com': 'off',
  // A redirect succeeds with 302.
  'operation-2xx-response': 'off',
} as const;

/** Documented beside the procedures. */
const probes = ['/livez', '/readyz'];

/** That real answers are as documented is asserted with each call over REST: see callers.ts. */
onBothStacks((stack) => {
  const load = () => documentOf(stack().url);

  test('the document is OpenAPI 3.1, and a linter finds nothing', async () => {
    const document = await load();
    expect(document.openapi).toMatch(/^3\.1\./);
    const config = await createConfig({ extends: ['recommended'], rules });
    const findings = await lintFromString({ source: JSON.stringify(document), absoluteRef: '/openapi.json', config });
    expect(findings.map(({ ruleId, message, location }) => [ruleId, location[0]?.pointer, message])).toEqual([]);
  });

  test('it has every path of the contract, and no other', async () => {
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

  test.each(probes)('%s answers as it is documented, as does a request to it that is malformed', async (path) => {
    const { url } = stack();
    for (const [query, status] of [
      ['', 200],
      [`?${'a&'.repeat(100)}`, 400],
    ] as const) {
      const response = await fetch(url + path + query);
      expect(response.status).toBe(status);
      await expectDocumented(url, 'GET', path, status, await response.json());
    }
  });

  test('every error body is ours', async () => {
    const { paths: documented, components } = await load();
    const errors = ['Error', 'PresignError', 'UploadError'];
    const users = ['ManagedAccount', 'ManagedUser', 'Profile', 'User'];
    expect(Object.keys(components.schemas).sort()).toEqual([...errors, ...users].sort());
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
