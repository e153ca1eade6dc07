import { expect, test } from 'vitest';
import { createAddressCheck } from '../../../server/parts/webhook-sender/addresses.ts';

/** The addresses that webhooks may connect to. */

const isAllowed = createAddressCheck([]);

test.each([
  ['loopback', '127.0.0.1', '127.255.255.254', '::1'],
  ['unspecified', '0.0.0.0', '0.1.2.3', '::'],
  ['private', '10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fd12:3456::1'],
  ['shared by a carrier', '100.64.0.1', '100.127.255.255'],
  ['link-local', '169.254.0.1', 'fe80::1', 'fe80::1%eth0', 'fe80::1%1'],
  ['the metadata of a cloud', '169.254.169.254', 'fd00:ec2::254'],
  ['protocol assignments', '192.0.0.1', '192.0.0.170', '192.88.99.1', '100::1'],
  ['documentation', '192.0.2.1', '198.51.100.7', '203.0.113.9', '2001:db8::1', '3fff::1'],
  ['benchmarks', '198.18.0.1', '198.19.255.255', '2001:2::1'],
  ['multicast', '224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1'],
  ['reserved and broadcast', '240.0.0.1', '255.255.255.255', '4000::1', '5f00::1'],
  [
    'IPv4 mapped into IPv6',
    '::ffff:127.0.0.1',
    '::ffff:10.0.0.1',
    '::ffff:7f00:1',
    '::ffff:8.8.8.8',
    '::ffff:0:127.0.0.1',
  ],
  ['IPv4 compatible with IPv6', '::127.0.0.1', '::10.0.0.1', '::8.8.8.8'],
  ['NAT64', '64:ff9b::127.0.0.1', '64:ff9b::a00:1', '64:ff9b:1::a00:1'],
  ['6to4', '2002:7f00:1::', '2002:a00:1::1', '2002:808:808::1'],
  ['Teredo', '2001:0:4136:e378:8000:63bf:3fff:fdd2', '2001::1'],
  ['no address', '', 'localhost', '127.1', '0x7f000001', '256.1.1.1'],
])('%s is refused', (_what, ...addresses) => {
  expect(addresses.filter(isAllowed)).toEqual([]);
});

test('public addresses are allowed', () => {
  const addresses = [
    '8.8.8.8',
    '1.1.1.1',
    '100.63.255.255',
    '100.128.0.1',
    '172.15.0.1',
    '172.32.0.1',
    '223.255.255.255',
  ];
  const ipv6 = ['2606:4700:4700::1111', '2a00:1450:4001::1', '2001:200::1', '2003::1'];
  expect([...addresses, ...ipv6].filter((address) => !isAllowed(address))).toEqual([]);
});

test('WEBHOOK_ALLOW opens networks, and only these', () => {
  const opened = createAddressCheck(['10.1.0.0/16', 'fd00:1::/32', '127.0.0.1/32']);
  expect(['10.1.2.3', 'fd00:1::7', '127.0.0.1'].filter((address) => !opened(address))).toEqual([]);
  expect(['10.2.0.1', 'fd00:2::1', '127.0.0.2', '::1', '169.254.169.254'].filter(opened)).toEqual([]);
});
