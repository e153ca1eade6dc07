import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

/** `npx account-client types`: the client with the types of an operator's own fields. */

const root = join(import.meta.dirname, '../..');
const command = join(root, 'client/dist/cli/account-client.js');
// Inside the repository, where the files find the client.
const project = join(import.meta.dirname, 'own-fields');
afterAll(() => rmSync(project, { recursive: true, force: true }));

const labels = { en: 'It’s a */ label' };
const fields = [
  { name: 'username', type: 'text', labels },
  { name: 'height', type: 'number', labels },
  { name: 'news', type: 'boolean', labels },
  { name: 'born', type: 'date', labels },
  { name: 'plan', type: 'choice', choices: ['free', "Ada's"], labels },
];

const run = (...args: string[]) => spawnSync(process.execPath, [command, ...args], { encoding: 'utf8' });

const use = `
import { createClient, createServiceClient, type ProfileFields } from 'account-client';
import type { AppRouter } from 'account-client/trpc';
import type { inferRouterOutputs } from '@trpc/server';

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
export const plan: Same<ProfileFields['plan'], 'free' | "Ada's"> = true;
export const ofRouter: Same<
  NonNullable<inferRouterOutputs<AppRouter>['profile']['get']['user']['fields']>['height'],
  number | null | undefined
> = true;

const client = createClient({ url: '' });
const { user } = await client.profile.get.query();
export const height: number | null | undefined = user.fields?.height;
export const news: boolean = user.fields?.news ?? false;
// @ts-expect-error: no such field
export const shoe = user.fields?.shoe;
await client.profile.update.mutate({ fields: { plan: 'free', born: null } });
// @ts-expect-error: another choice
await client.profile.update.mutate({ fields: { plan: 'gold' } });
// @ts-expect-error: another type
await client.auth.register.mutate({ name: 'Ada', email: 'a@b.c', password: 'x', fields: { height: '1' } });
const service = createServiceClient({ url: '', token: 't' });
await service.service.setFields.mutate({ userId: 'u', fields: { plan: "Ada's" } });
// @ts-expect-error: no such field
await service.service.setFields.mutate({ userId: 'u', fields: { shoe: 1 } });
`;

test('the printed declaration gives the client, the router and services the types of the fields', () => {
  mkdirSync(project, { recursive: true });
  writeFileSync(join(project, 'fields.json'), JSON.stringify(fields));
  const { stdout, status } = run('types', join(project, 'fields.json'));
  expect(status).toBe(0);
  writeFileSync(join(project, 'profile-fields.d.ts'), stdout);
  writeFileSync(join(project, 'use.ts'), use);
  writeFileSync(
    join(project, 'tsconfig.json'),
    JSON.stringify({ extends: '../../../tsconfig.json', include: ['*.ts'], exclude: [] }),
  );
  let said = '';
  try {
    execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', project], { encoding: 'utf8' });
  } catch (error) {
    said = (error as { stdout: string }).stdout;
  }
  expect(said).toBe('');
});

test('wrong use, and a file that has no fields, print nothing and end with code 2', () => {
  mkdirSync(project, { recursive: true });
  const wrong = join(project, 'wrong.json');
  for (const content of [
    '{',
    '{}',
    '[{"name":"a"}]',
    '[{"name":"a b","type":"text"}]',
    '[{"name":"a","type":"constructor"}]',
  ]) {
    writeFileSync(wrong, content);
    expect(run('types', wrong)).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringContaining('cannot be used'),
    });
  }
  for (const args of [[], ['types'], ['print', wrong], ['types', wrong, 'x']]) {
    expect(run(...args)).toMatchObject({ status: 2, stdout: '', stderr: expect.stringContaining('Usage') });
  }
});
