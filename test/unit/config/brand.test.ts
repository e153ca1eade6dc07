import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  colorsOfBrand,
  contrast,
  pageColors,
  problemWithColor,
  type SchemeColors,
} from '../../../server/config/brand-color.ts';
import { parseConfig } from '../../../server/config/index.ts';
import { problemsOf } from './config-problems.ts';

/** The operator's name, picture, colour and links in the configuration. */

describe('the contrast', () => {
  // https://webaim.org/resources/contrastchecker/
  test.each([
    ['#000000', '#ffffff', 21],
    ['#ffffff', '#ffffff', 1],
    ['#767676', '#ffffff', 4.54],
    ['#777777', '#ffffff', 4.48],
    ['#0000ff', '#ffffff', 8.59],
    ['#00ff00', '#ffffff', 1.37],
    ['#ff0000', '#ffffff', 4],
    ['#f59e0b', '#ffffff', 2.15],
  ])('of %s and %s is %s', (one, other, ratio) => {
    expect(contrast(one, other)).toBeCloseTo(ratio, 2);
    expect(contrast(other, one)).toBe(contrast(one, other));
  });
});

test('the colours of mails, and of the contrast check, are those of the style sheet', () => {
  const sheet = readFileSync(new URL('../../../client/pages/styles/tokens.css', import.meta.url), 'utf8');
  const [light = '', dark = ''] = [...sheet.matchAll(/:root \{(.*?)\}/gs)].map(([, block]) => block);
  const inFull = (color = '') => color.replace(/^#(.)(.)(.)$/, '#$1$1$2$2$3$3');
  const colorOf = (block: string, name: string) => inFull(new RegExp(`--${name}: (#\\w+);`).exec(block)?.[1]);
  for (const [block, colors] of [
    [light, pageColors.light],
    [dark, pageColors.dark],
  ] as const) {
    const found = Object.keys(colors).map((name) => [name, colorOf(block, name === 'onAccent' ? 'on-accent' : name)]);
    expect(Object.fromEntries(found)).toEqual(colors);
  }
});

/** Links on every background, and labels of buttons, including hovered ones. */
function expectReadable(scheme: keyof typeof pageColors, { accent, accentStrong, onAccent, tint }: SchemeColors) {
  const { ground, surface } = pageColors[scheme];
  for (const color of [accent, accentStrong]) {
    for (const other of [ground, surface, tint, onAccent])
      expect(contrast(color, other), `${color} on ${other}`).toBeGreaterThanOrEqual(4.5);
  }
}

test('every colour is readable in light and dark mode, or refused with a suggestion', () => {
  const steps = ['00', '33', '66', '99', 'cc', 'ff'];
  const colors = steps.flatMap((red) => steps.flatMap((green) => steps.map((blue) => `#${red}${green}${blue}`)));
  let refused = 0;
  for (const color of colors) {
    const problem = problemWithColor(color);
    const usable = problem === undefined ? color : (/#[0-9a-f]{6}/.exec(problem)?.[0] ?? '');
    if (problem !== undefined) refused += 1;
    expect(problemWithColor(usable), color).toBeUndefined();
    const { light, dark } = colorsOfBrand(usable);
    expect(light.accent).toBe(usable);
    expectReadable('light', light);
    expectReadable('dark', dark);
  }
  expect(refused).toBeGreaterThan(50);
  expect(refused).toBeLessThan(colors.length - 50);
});

test('an unreadable colour is refused by name, with its contrast and a suggestion', () => {
  expect(problemsOf({ BRAND_COLOR: '#F59E0B' })).toMatch(
    /^ {2}BRAND_COLOR is too light [^\n]*: a contrast of [12]\.\d\d:1, and 4\.5:1 is needed\. #[0-9a-f]{6} would do$/m,
  );
});

test.each([
  ['APP_NAME', '   '],
  ['APP_NAME', 'x'.repeat(61)],
  ['APP_NAME', 'Acme\r\nBcc: evil@example.test'],
  ['APP_NAME', 'Acme\u0000'],
  ['APP_NAME', 'Acme\u2028Inc'],
  ['APP_LOGO_URL', 'http://cdn.example.com/logo.png'],
  ['APP_LOGO_URL', '//cdn.example.com/logo.png'],
  ['APP_LOGO_URL', 'logo.png'],
  ['APP_LOGO_URL', '/\\cdn.example.com'],
  ['APP_LOGO_URL', 'https://cdn.example.com/"onerror=alert(1)'],
  ['APP_LOGO_URL', 'data:image/png;base64,AAAA'],
  ['BRAND_COLOR', 'blue'],
  ['BRAND_COLOR', '#123'],
  ['BRAND_COLOR', '#1234567'],
  ['TIME_ZONE', 'Berlin'],
  ['SUPPORT_URL', 'support@example.com'],
  ['SUPPORT_URL', 'mailto:'],
  ['SUPPORT_URL', 'mailto:nobody'],
  ['SUPPORT_URL', 'http://example.com/help'],
  ['TERMS_URL', 'javascript:alert(1)'],
  ['TERMS_URL', 'mailto:terms@example.com'],
  ['TERMS_URL', 'https://user:password@example.com/terms'],
  ['TERMS_URL', 'https://:password@example.com/terms'],
  ['TERMS_URL', `https://example.com/${'x'.repeat(1000)}`],
  ['PRIVACY_URL', 'https:///'],
  ['PRIVACY_URL', 'https://example.com/a b'],
  ['TERMS_VERSION', '2026-11'],
])('%s=%j is refused by name', (name, value) => {
  expect(problemsOf({ [name]: value })).toMatch(new RegExp(`^  .*${name}`, 'm'));
});

test.each([
  [{}, undefined],
  [{ SUPPORT_URL: 'https://example.com' }, undefined],
  [{ TERMS_URL: 'https://example.com/terms' }, 'https://example.com/terms'],
  [{ TERMS_URL: '/terms', PRIVACY_URL: 'https://example.com/privacy' }, '/terms https://example.com/privacy'],
  [{ PRIVACY_URL: '/privacy', TERMS_VERSION: ' 2026-11 ' }, '2026-11'],
])('with %o the version of the terms is %s', (environment: Record<string, string>, version) => {
  expect(parseConfig(environment).termsVersion).toBe(version);
});

test('a colour may omit its #, which starts a comment in environment files', () => {
  for (const color of ['0F766E', '#0f766e'])
    expect(parseConfig({ BRAND_COLOR: color }).brand.colors?.light.accent).toBe('#0f766e');
});

test('a name may be any line, with quotes and emoji', () => {
  const name = '"Ada & <Söhne>", 🎉 Inc.';
  expect(parseConfig({ APP_NAME: ` ${name} ` }).brand.name).toBe(name);
  expect(parseConfig({ APP_NAME: '🎉'.repeat(60) }).brand.name).toBe('🎉'.repeat(60));
  expect(parseConfig({ SUPPORT_URL: 'mailto:help@example.com?subject=Login' }).brand.support).toBe(
    'mailto:help@example.com?subject=Login',
  );
});

const address = 'no-reply@example.com';
test.each([
  [{}, { name: 'Account service', address: 'no-reply@localhost' }],
  [{ APP_NAME: 'Acme, Inc.' }, { name: 'Acme, Inc.', address: 'no-reply@localhost' }],
  [{ MAIL_FROM: address }, { name: '', address }],
  [
    { MAIL_FROM: address, APP_NAME: 'Acme' },
    { name: 'Acme', address },
  ],
  [
    { MAIL_FROM: `<${address}>`, APP_NAME: 'Acme' },
    { name: 'Acme', address },
  ],
  [
    { MAIL_FROM: `Post <${address}>`, APP_NAME: 'Acme' },
    { name: 'Post', address },
  ],
  [{ MAIL_FROM: `"Acme, \\"Inc.\\"" <${address}>` }, { name: 'Acme, "Inc."', address }],
])('with %o mails come from %o', (environment: Record<string, string>, sender) => {
  expect(parseConfig(environment).mailFrom).toEqual(sender);
});
