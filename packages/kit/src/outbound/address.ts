import ipaddr from 'ipaddr.js';
import { isIP } from 'node:net';

/**
 * The class of an IP address. Only `public` is on the public internet; an address that cannot be
 * parsed is `invalid`, so that checks fail closed.
 */
export type AddressClass =
  | 'public'
  | 'loopback'
  | 'link-local'
  | 'metadata'
  | 'private'
  | 'carrier-grade-nat'
  | 'unique-local'
  | 'site-local'
  | 'ipv4-mapped'
  | 'ipv4-translated'
  | 'ipv4-compatible'
  | 'nat64'
  | '6to4'
  | 'teredo'
  | 'unspecified'
  | 'this-network'
  | 'multicast'
  | 'broadcast'
  | 'documentation'
  | 'benchmarking'
  | 'reserved'
  | 'invalid';

export type Address = ipaddr.IPv4 | ipaddr.IPv6;

type Range = readonly [AddressClass, Address, number];

// The first matching range wins, so narrow ranges come before wide ones.
const ipv4Ranges = ranges([
  ['unspecified', '0.0.0.0/32'],
  ['this-network', '0.0.0.0/8'],
  ['loopback', '127.0.0.0/8'],
  ['link-local', '169.254.0.0/16'],
  // Cloud metadata and host agents outside the link-local range: Alibaba, Oracle, Azure.
  ['metadata', '100.100.100.200/32', '192.0.0.192/32', '168.63.129.16/32'],
  ['carrier-grade-nat', '100.64.0.0/10'],
  ['private', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'],
  ['documentation', '192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24'],
  ['benchmarking', '198.18.0.0/15'],
  ['multicast', '224.0.0.0/4'],
  ['broadcast', '255.255.255.255/32'],
  // Protocol assignments, 6to4 relays, AS112 and AMT anycast, class E.
  ['reserved', '192.0.0.0/24', '192.88.99.0/24', '192.31.196.0/24', '192.175.48.0/24'],
  ['reserved', '192.52.193.0/24', '240.0.0.0/4'],
  ['public', '0.0.0.0/0'],
]);

const ipv6Ranges = ranges([
  ['unspecified', '::/128'],
  ['loopback', '::1/128'],
  ['ipv4-mapped', '::ffff:0:0/96'],
  ['ipv4-translated', '::ffff:0:0:0/96'],
  ['ipv4-compatible', '::/96'],
  ['nat64', '64:ff9b::/96', '64:ff9b:1::/48'],
  ['6to4', '2002::/16'],
  ['teredo', '2001::/32'],
  ['link-local', 'fe80::/10'],
  ['site-local', 'fec0::/10'],
  // Cloud metadata inside the unique-local range: EC2, EKS, Google.
  ['metadata', 'fd00:ec2::254/128', 'fd00:ec2::23/128', 'fd20:ce::254/128'],
  ['unique-local', 'fc00::/7'],
  ['multicast', 'ff00::/8'],
  ['documentation', '2001:db8::/32', '3fff::/20'],
  ['benchmarking', '2001:2::/48'],
  ['reserved', '2001::/23', '2620:4f:8000::/48'],
  ['public', '2000::/3'],
  // Only 2000::/3 is allocated. Later allocations must be added here.
  ['reserved', '::/0'],
]);

/** Parses an address in standard notation; undefined for any other notation. */
export function readAddress(text: string): Address | undefined {
  // ipaddr.js also reads octal, hex and short forms that a socket would take for a host name.
  if (isIP(text) === 0) return undefined;
  const plain = withoutDottedTail(text.replace(/%.*$/, ''));
  return ipaddr.isValid(plain) ? ipaddr.parse(plain) : undefined;
}

/** ipaddr.js takes `::1.2.3.4` for `::ffff:1.2.3.4`; the parser of URLs does not. */
function withoutDottedTail(text: string): string {
  if (!text.includes(':') || !text.includes('.')) return text;
  return new URL(`http://[${text}]/`).hostname.slice(1, -1);
}

export function classifyAddress(text: string): AddressClass {
  const address = readAddress(text);
  return address === undefined ? 'invalid' : classOf(address);
}

function classOf(address: Address): AddressClass {
  const table = address.kind() === 'ipv4' ? ipv4Ranges : ipv6Ranges;
  for (const [name, base, prefix] of table) {
    if (address.match(base, prefix)) return name;
  }
  return 'invalid';
}

// Byte offsets of the IPv4 address in each transition format. Teredo has its server there.
const ipv4Places: Partial<Record<AddressClass, readonly number[]>> = {
  'ipv4-mapped': [12, 13, 14, 15],
  'ipv4-translated': [12, 13, 14, 15],
  'ipv4-compatible': [12, 13, 14, 15],
  nat64: [12, 13, 14, 15],
  '6to4': [2, 3, 4, 5],
  teredo: [4, 5, 6, 7],
};

// A local NAT64 prefix may be shorter; RFC 6052 defines the offsets for each length.
const localNat64Places = [
  [6, 7, 9, 10],
  [7, 9, 10, 11],
  [9, 10, 11, 12],
];

/** The IPv4 addresses that a transition address can lead to. None for every other class. */
export function embeddedIpv4(text: string): string[] {
  const address = readAddress(text);
  if (address === undefined || address.kind() === 'ipv4') return [];
  const name = classOf(address);
  const places = ipv4Places[name];
  if (places === undefined) return [];
  const bytes = address.toByteArray();
  const at = (positions: readonly number[]) => positions.map((i) => bytes[i]).join('.');
  const found = [at(places)];
  // The Teredo client address is at the end, inverted.
  if (name === 'teredo')
    found.push(
      bytes
        .slice(12)
        .map((byte) => byte ^ 0xff)
        .join('.'),
    );
  if (name !== 'nat64' || bytes[5] !== 1) return found;
  // Zeros mean that another prefix length is in use.
  return [...found, ...localNat64Places.map(at)].filter((each) => !each.startsWith('0.'));
}

function ranges(rows: readonly (readonly [AddressClass, ...string[]])[]): Range[] {
  return rows.flatMap(([name, ...cidrs]) =>
    cidrs.map((cidr): Range => {
      const [base, prefix] = ipaddr.parseCIDR(cidr);
      return [name, base, prefix];
    }),
  );
}

/** A range of addresses that an allowlist entry opens. */
export interface Network {
  /** The canonical spelling, such as `10.0.0.0/8`. */
  readonly text: string;
  /** The class of the first address in it. */
  readonly startsIn: AddressClass;
  contains(address: Address): boolean;
}

type NetworkResult = { ok: true; network: Network } | { ok: false; reason: string };

/** Reads `10.0.0.0/8`, `fd00::/8`, or one address without a prefix. */
export function parseNetwork(text: string): NetworkResult {
  const [baseText = '', prefixText, ...rest] = text.split('/');
  const base = baseText.includes('%') ? undefined : readAddress(baseText);
  if (base === undefined || rest.length > 0) {
    return refuse(`"${text}" is not a network; write it as 10.0.0.0/8 or fd00::/8`);
  }
  const maxPrefix = base.kind() === 'ipv4' ? 32 : 128;
  const prefix = prefixText === undefined ? maxPrefix : readPrefix(prefixText);
  if (prefix === undefined || prefix > maxPrefix) {
    return refuse(`"${text}" needs a prefix length from 0 to ${maxPrefix} after the slash`);
  }
  const first = networkStart(base, prefix);
  const canonical = `${first.toString()}/${prefix}`;
  if (first.toString() !== base.toString()) {
    return refuse(
      `"${text}" has bits set beyond its prefix; write ${canonical} for the network ` +
        `or ${base.toString()}/${maxPrefix} for the one address`,
    );
  }
  const network: Network = {
    text: canonical,
    startsIn: classOf(first),
    // IPv4-mapped and translated forms do not match: families never mix.
    contains: (address) => address.kind() === first.kind() && address.match(first, prefix),
  };
  return { ok: true, network };
}

function readPrefix(text: string): number | undefined {
  return /^\d{1,3}$/.test(text) ? Number(text) : undefined;
}

function networkStart(base: Address, prefix: number): Address {
  const bytes = base.toByteArray().map((byte, i) => {
    const prefixBits = Math.min(8, Math.max(0, prefix - 8 * i));
    return byte & (0xff << (8 - prefixBits)) & 0xff;
  });
  return ipaddr.fromByteArray(bytes);
}

function refuse(reason: string): NetworkResult {
  return { ok: false, reason };
}
