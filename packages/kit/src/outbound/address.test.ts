import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { describe, expect, test } from 'vitest';
import { classifyAddress, embeddedIpv4 } from './address.js';

describe('each special range has its name', () => {
  test.each([
    ['8.8.8.8', 'public'],
    ['1.1.1.1', 'public'],
    ['9.255.255.255', 'public'],
    ['11.0.0.0', 'public'],
    ['172.15.255.255', 'public'],
    ['172.32.0.0', 'public'],
    ['100.63.255.255', 'public'],
    ['100.128.0.0', 'public'],
    ['223.255.255.255', 'public'],
    ['0.0.0.0', 'unspecified'],
    ['0.1.2.3', 'this-network'],
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['169.254.169.254', 'link-local'],
    ['169.254.0.1', 'link-local'],
    ['100.100.100.200', 'metadata'],
    ['168.63.129.16', 'metadata'],
    ['192.0.0.192', 'metadata'],
    ['10.0.0.1', 'private'],
    ['172.16.0.1', 'private'],
    ['172.31.255.255', 'private'],
    ['192.168.1.1', 'private'],
    ['100.64.0.1', 'carrier-grade-nat'],
    ['192.0.0.8', 'reserved'],
    ['192.0.2.1', 'documentation'],
    ['198.51.100.7', 'documentation'],
    ['203.0.113.9', 'documentation'],
    ['192.88.99.1', 'reserved'],
    ['198.18.0.1', 'benchmarking'],
    ['198.19.255.255', 'benchmarking'],
    ['224.0.0.1', 'multicast'],
    ['239.255.255.255', 'multicast'],
    ['240.0.0.1', 'reserved'],
    ['255.255.255.255', 'broadcast'],
    ['2606:4700:4700::1111', 'public'],
    ['2a00:1450:4001:80b::200e', 'public'],
    ['::', 'unspecified'],
    ['::1', 'loopback'],
    ['::ffff:127.0.0.1', 'ipv4-mapped'],
    ['::ffff:8.8.8.8', 'ipv4-mapped'],
    ['::ffff:0:7f00:1', 'ipv4-translated'],
    ['::127.0.0.1', 'ipv4-compatible'],
    ['::7f00:1', 'ipv4-compatible'],
    ['64:ff9b::7f00:1', 'nat64'],
    ['64:ff9b::8.8.8.8', 'nat64'],
    ['64:ff9b:1::1', 'nat64'],
    ['2002:7f00:1::', '6to4'],
    ['2001:0:4136:e378:8000:63bf:3fff:fdd2', 'teredo'],
    ['fe80::1', 'link-local'],
    ['fe80::1%eth0', 'link-local'],
    ['fe80::1%eth0.100', 'link-local'],
    ['febf::1', 'link-local'],
    ['fec0::1', 'site-local'],
    ['fc00::1', 'unique-local'],
    ['fd12:3456::1', 'unique-local'],
    ['fd00:ec2::254', 'metadata'],
    ['fd20:ce::254', 'metadata'],
    ['ff02::1', 'multicast'],
    ['2001:db8::1', 'documentation'],
    ['3fff::1', 'documentation'],
    ['2001:2::1', 'benchmarking'],
    ['2001:10::1', 'reserved'],
    ['2001:20::1', 'reserved'],
    ['100::1', 'reserved'],
    ['5f00::1', 'reserved'],
    ['4000::1', 'reserved'],
  ])('%s is %s', (address, expected) => {
    expect(classifyAddress(address)).toBe(expected);
  });
});

test.each([
  '',
  'localhost',
  '127.1',
  '0177.0.0.1',
  '0x7f.0.0.1',
  '2130706433',
  '1.2.3.4.5',
  '[::1]',
])('"%s" is no address that a socket would take as one', (text) => {
  expect(classifyAddress(text)).toBe('invalid');
});

test('whatever ipaddr.js calls special is not public here', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ minLength: 4, maxLength: 4 }),
    fc.uint8Array({ minLength: 16, maxLength: 16 }),
    // Most random IPv6 addresses are unassigned; these lean towards the crowded prefixes.
    fc
      .tuple(
        fc.constantFrom([0x20, 0x01], [0x20, 0x02], [0, 0x64], [0xfd, 0], [0xfe, 0x80], [0, 0]),
        fc.uint8Array({ minLength: 14, maxLength: 14 }),
      )
      .map(([head, tail]) => Uint8Array.from([...head, ...tail])),
  );
  fc.assert(
    fc.property(bytes, (raw) => {
      const address = ipaddr.fromByteArray([...raw]);
      if (address.range() === 'unicast') return;
      expect(classifyAddress(address.toString())).not.toBe('public');
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  ['::ffff:169.254.169.254', ['169.254.169.254']],
  ['::a9fe:a9fe', ['169.254.169.254']],
  ['::ffff:0:a9fe:a9fe', ['169.254.169.254']],
  ['2002:a9fe:a9fe::1', ['169.254.169.254']],
  ['2001:0:a9fe:a9fe::5601:5601', ['169.254.169.254', '169.254.169.254']],
  ['8.8.8.8', []],
  ['2606:4700::1', []],
])('%s leads to %j', (address, expected) => {
  expect(embeddedIpv4(address)).toEqual(expected);
});

test('a NAT64 address of a local prefix leads to what each prefix length would mean', () => {
  expect(embeddedIpv4('64:ff9b::a9fe:a9fe')).toEqual(['169.254.169.254']);
  expect(embeddedIpv4('64:ff9b:1:a9fe:a9:fe00::')).toContain('169.254.169.254');
  expect(embeddedIpv4('64:ff9b:1:a9:fe:a9fe::')).toContain('169.254.169.254');
  expect(embeddedIpv4('64:ff9b:1::a9:fea9:fe00:0')).toContain('169.254.169.254');
  expect(embeddedIpv4('64:ff9b:1::808:808')).toEqual(['8.8.8.8']);
});
