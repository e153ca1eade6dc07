import { expect, test } from 'vitest';
import { clientAddress } from '../../server/http/client-address.ts';

test.each([
  ['the socket, without proxies', '9.9.9.9', '1.1.1.1', 0, '9.9.9.9'],
  ['the last entry, behind one proxy', '10.0.0.1', '1.1.1.1, 2.2.2.2', 1, '2.2.2.2'],
  ['the last but one, behind two', '10.0.0.1', '1.1.1.1, 2.2.2.2, 3.3.3.3', 2, '2.2.2.2'],
  ['the first there is, if there are fewer', '10.0.0.1', '2.2.2.2', 3, '2.2.2.2'],
  ['the socket, if the entry is none', '9.9.9.9', 'unknown', 1, '9.9.9.9'],
  ['the socket, if there is no entry', '9.9.9.9', '', 1, '9.9.9.9'],
  ['IPv4 in IPv6 notation as IPv4', '::ffff:1.2.3.4', '', 0, '1.2.3.4'],
  ['an IPv6 address in full', '2001:db8:1:2:3:4:5:6', '', 0, '2001:db8:1:2:3:4:5:6'],
  ['the entry without its port', '10.0.0.1', '1.1.1.1:4711', 1, '1.1.1.1'],
  ['the IPv6 entry without its port', '10.0.0.1', '[2001:db8::1]:4711', 1, '2001:db8::1'],
  ['nothing at all', undefined, '', 0, 'unknown'],
])('%s', (_, socket, forwarded, proxies, expected) => {
  expect(clientAddress(socket, forwarded, proxies)).toBe(expected);
});
