import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Koa from 'koa';
import { afterAll, expect, test } from 'vitest';
import { pages } from '../../server/http/web/pages.ts';

const folder = mkdtempSync(join(tmpdir(), 'account-pages-'));
afterAll(() => rmSync(folder, { recursive: true }));

const quiet = { warn: () => undefined };

test('pages that were not built are reported in one line of the log, and none are served', () => {
  const said: unknown[] = [];
  expect(
    pages({ appUrl: '', providers: [] }, { warn: (line: unknown) => said.push(line) }, join(folder, 'missing')),
  ).toBeUndefined();
  expect(said).toEqual([expect.stringContaining('npm run build')]);
});

test('no setting can end the script element that contains it', async () => {
  mkdirSync(join(folder, 'assets'));
  writeFileSync(join(folder, 'index.html'), '<script type="application/json">{}</script>');
  const middleware = pages({ appUrl: 'https://x.test/</script><script>$&', providers: [] }, quiet, folder);
  const server = new Koa().use(middleware ?? (() => undefined)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const answer = await fetch(`http://127.0.0.1:${port}/login`, { headers: { accept: 'text/html' } });
  const html = await answer.text();
  server.close();
  expect(html.match(/<\/script>/g)).toHaveLength(1);
  expect(JSON.parse(html.replace(/<[^>]*>/g, ''))).toEqual({
    appUrl: 'https://x.test/</script><script>$&',
    providers: [],
  });
});
