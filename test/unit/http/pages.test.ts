import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import Koa from 'koa';
import { expect, test } from 'vitest';
import { parseConfig } from '../../../server/config/index.ts';
import { pages } from '../../../server/http/web/pages.ts';
import { escapeHtml } from '../../../server/lib/escape-html.ts';
import { readTexts } from '../../../server/texts/index.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

const folder = temporaryDirectory('pages');
mkdirSync(join(folder, 'assets'));

const brand = parseConfig({}).brand;
const texts = readTexts(undefined);
const quiet = { warn: () => undefined };
const settings = {
  appUrl: '',
  origins: [],
  acceptsLoopbackOrigins: false,
  providers: [],
  reauthenticatingProviders: [],
  emailCodes: false,
  impersonation: false,
  restorableDays: 14,
  registration: { mode: 'open' as const, domains: [] },
};

test('unbuilt pages are logged once, and not served', () => {
  const said: unknown[] = [];
  const log = { warn: (line: unknown) => said.push(line) };
  expect(pages({ ...settings, brand }, texts, log, join(folder, 'missing'))).toBeUndefined();
  expect(said).toEqual([expect.stringContaining('npm run build')]);
});

/** The shell served with these settings. */
async function shellWith(settings: Parameters<typeof pages>[0]): Promise<string> {
  const middleware = pages(settings, texts, quiet, folder);
  const server = new Koa().use(middleware ?? (() => undefined)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const answer = await fetch(`http://127.0.0.1:${port}/login`, { headers: { accept: 'text/html' } });
  const html = await answer.text();
  server.close();
  return html;
}

test('no setting can close the script element that contains it', async () => {
  writeFileSync(join(folder, 'index.html'), '<script type="application/json">{"settings":0}</script>');
  const html = await shellWith({ ...settings, brand, appUrl: 'https://x.test/</script><script>$&' });
  expect(html.match(/<\/script>/g)).toHaveLength(1);
  expect(JSON.parse(html.replace(/<[^>]*>/g, ''))).toEqual({
    ...settings,
    appUrl: 'https://x.test/</script><script>$&',
    brand: {},
  });
});

test.each(['Acme', '</title><script>alert(1)</script>', '{}', '$&%234f46e5</head>'])(
  'the shell has the name %s, and the brand colours of both schemes after the style sheet',
  async (APP_NAME) => {
    const source = readFileSync(new URL('../../../client/pages/index.html', import.meta.url), 'utf8');
    writeFileSync(join(folder, 'index.html'), source);
    const html = await shellWith({ ...settings, brand: parseConfig({ APP_NAME, BRAND_COLOR: '#0f766e' }).brand });
    expect(html).toContain(`<title>${escapeHtml(APP_NAME)}</title>`);
    expect(html).toContain("fill='%230f766e'");
    const [, style = ''] = /<style>(.*?)<\/style>\s*<\/head>/s.exec(html) ?? [];
    expect(style).toMatch(
      /^:root\{--accent:#0f766e;.*;--on-accent:#ffffff;.*\}@media \(prefers-color-scheme:dark\)\{:root\{--accent:#.*\}\}$/,
    );
    expect(html.indexOf('rel="stylesheet"')).toBeLessThan(html.indexOf('<style>'));
    const [, json = ''] = /id="settings">(.*?)<\/script>/s.exec(html) ?? [];
    expect(JSON.parse(json)).toEqual({ ...settings, brand: { name: APP_NAME } });
  },
);
