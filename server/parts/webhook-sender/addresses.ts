import { BlockList, isIP } from 'node:net';

/** Networks of IPv4 that are not public: the IANA special-purpose registry, and multicast. */
const SPECIAL_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
];

/** Global unicast. Outside are loopback, private, link-local and multicast, mapped and compatible IPv4, and NAT64. */
const GLOBAL_IPV6 = ['2000::/3'];

/** Protocol assignments (Teredo is one), documentation, and 6to4, which contains IPv4. */
const SPECIAL_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];

const listOf = (networks: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    list.addSubnet(address, Number(bits), familyOf(address));
  }
  return list;
};

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** True for public addresses, and for those in a network of `allowed` (`10.0.0.0/8`). */
export function createAddressCheck(allowed: readonly string[]): (address: string) => boolean {
  const opened = listOf(allowed);
  const global = listOf(GLOBAL_IPV6);
  const special = { ipv4: listOf(SPECIAL_IPV4), ipv6: listOf(SPECIAL_IPV6) };
  return (scoped) => {
    const [address = ''] = scoped.split('%');
    if (isIP(address) === 0) return false;
    const family = familyOf(address);
    if (opened.check(address, family)) return true;
    return (family === 'ipv4' || global.check(address, family)) && !special[family].check(address, family);
  };
}
