import { isIP } from 'node:net';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { describe, expect, test } from 'vitest';
import { clientAddress } from '../../../server/http/client-address.ts';
import { createLimits } from '../../../server/limits/index.ts';
import { anyCharacter, cases } from '../../rig/client/random.ts';

test.each([
  ['the socket, without proxies', '9.9.9.9', '1.1.1.1', 0, '9.9.9.9'],
  ['the last entry, behind one proxy', '10.0.0.1', '1.1.1.1, 2.2.2.2', 1, '2.2.2.2'],
  ['the last but one, behind two', '10.0.0.1', '1.1.1.1, 2.2.2.2, 3.3.3.3', 2, '2.2.2.2'],
  ['the first there is, if there are fewer', '10.0.0.1', '2.2.2.2', 3, '2.2.2.2'],
  ['the socket, if the entry is no address', '9.9.9.9', 'unknown', 1, '9.9.9.9'],
  ['the socket, if there is no entry', '9.9.9.9', '', 1, '9.9.9.9'],
  ['IPv4 in IPv6 notation as IPv4', '::ffff:1.2.3.4', '', 0, '1.2.3.4'],
  ['an IPv6 address in full', '2001:db8:1:2:3:4:5:6', '', 0, '2001:db8:1:2:3:4:5:6'],
  ['the entry without its port', '10.0.0.1', '1.1.1.1:4711', 1, '1.1.1.1'],
  ['the IPv6 entry without its port', '10.0.0.1', '[2001:db8::1]:4711', 1, '2001:db8::1'],
  ['nothing at all', undefined, '', 0, 'unknown'],
])('%s', (_, socket, forwarded, proxies, expected) => {
  expect(clientAddress(socket, forwarded, proxies)).toBe(expected);
});

const ipv4 = fc.ipV4();
const ipv6 = fc.ipV6().filter((address) => !address.includes('.'));
const address = fc.oneof(ipv4, ipv6);
const canonical = (address: string) => ipaddr.process(address).toString();
/** What a client may write into the header: anything but the comma that separates entries. */
const written = fc.oneof(
  address,
  fc.string({ unit: anyCharacter }),
  fc.constantFrom('', 'unknown', '::1', '127.0.0.1'),
);
const entries = fc.array(
  written.map((entry) => entry.replaceAll(',', '')),
  { maxLength: 5 },
);

describe('whatever a client writes into X-Forwarded-For', () => {
  test('only the entry of the outermost counted proxy decides', () => {
    const proxies = fc.array(address, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(entries, proxies, address, (left, right, socket) => {
        const header = [...left, ...right].join(', ');
        expect(clientAddress(socket, header, right.length)).toBe(canonical(right[0] ?? ''));
      }),
      cases(200),
    );
  });

  test('without proxies it is ignored', () => {
    fc.assert(
      fc.property(entries, address, (left, socket) => {
        expect(clientAddress(socket, left.join(','), 0)).toBe(canonical(socket));
      }),
      cases(100),
    );
  });

  test('the result is one normalized address, or none', () => {
    fc.assert(
      fc.property(entries, fc.option(written, { nil: undefined }), fc.nat(6), (left, socket, proxies) => {
        const found = clientAddress(socket, left.join(','), proxies);
        if (found === 'unknown') return;
        expect(isIP(found.replace(/%.*$/, ''))).not.toBe(0);
        expect(clientAddress(found, undefined, 0)).toBe(found);
      }),
      cases(200),
    );
  });
});

test('an IPv4-mapped IPv6 address is the IPv4 address', () => {
  fc.assert(
    fc.property(fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255)), (bytes) => {
      const plain = bytes.join('.');
      const [high, low] = [0, 2].map((i) => ((bytes[i] ?? 0) * 256 + (bytes[i + 1] ?? 0)).toString(16));
      for (const mapped of [`::ffff:${plain}`, `::FFFF:${high}:${low}`, `0:0:0:0:0:ffff:${high}:${low}`]) {
        expect(clientAddress(mapped, undefined, 0)).toBe(plain);
        expect(clientAddress('::1', `[${mapped}]:4711`, 1)).toBe(plain);
      }
    }),
    cases(100),
  );
});

test('addresses count per IPv4 address and per /64, /56 and /48; a refusal of the narrower spares the wider', async () => {
  const POINTS = 2;
  /** Few networks with unique addresses: `2001:db8:<48>:<56><64>:…`. */
  const client = fc.oneof(
    fc.record({ kind: fc.constant('4' as const), last: fc.nat(2), mapped: fc.boolean() }),
    fc.record({
      kind: fc.constant('6' as const),
      site: fc.nat(1),
      part: fc.nat(2),
      network: fc.nat(2),
      host: fc.nat(0xffff),
    }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(client, { maxLength: 60, size: 'max' }), async (clients) => {
      const used = new Map<string, number>();
      const use = (key: string, points: number) => {
        used.set(key, (used.get(key) ?? 0) + 1);
        return (used.get(key) ?? 0) <= points;
      };
      const counter = ({ name, points }: { name: string; points: number }) => {
        const counted = new Map<string, number>();
        return async (key: string) => {
          counted.set(key, (counted.get(key) ?? 0) + 1);
          return { allowed: (counted.get(key) ?? 0) <= points, msBeforeNext: name.length };
        };
      };
      const rates = new Proxy({}, { get: () => ({ points: POINTS, seconds: 900 }) });
      const limits = createLimits({ counter } as never, rates as never);
      for (const each of clients) {
        const address =
          each.kind === '4'
            ? `${each.mapped ? '::ffff:' : ''}192.0.2.${each.last}`
            : `2001:db8:${each.site}:${each.part.toString(16)}0${each.network}:${each.host.toString(16)}::1`;
        const expected =
          each.kind === '4'
            ? use(`4/${each.last}`, POINTS)
            : use(`${each.site}/${each.part}/${each.network}`, POINTS) &&
              use(`${each.site}/${each.part}`, 4 * POINTS) &&
              use(`${each.site}`, 16 * POINTS);
        const allowed = await limits.enforce('login', clientAddress(address, undefined, 0)).then(
          () => true,
          () => false,
        );
        expect(allowed, address).toBe(expected);
      }
    }),
    cases(50),
  );
});
