import { expect, test } from 'vitest';
import { readAddress, parseNetwork } from './address.js';

function read(text: string) {
  const result = parseNetwork(text);
  if (!result.ok) throw new Error(result.reason);
  return result.network;
}

test.each([
  ['127.0.0.0/8', '127.0.0.0/8'],
  ['10.1.2.3', '10.1.2.3/32'],
  ['fd00:0:0::/8', 'fd00::/8'],
  ['::1', '::1/128'],
  ['0.0.0.0/0', '0.0.0.0/0'],
  ['::ffff:127.0.0.0/104', '::ffff:7f00:0/104'],
])('%s is read as %s', (text, canonical) => {
  expect(read(text).text).toBe(canonical);
});

test.each([
  ['10.0.0.0/8', '10.255.0.1', true],
  ['10.0.0.0/8', '11.0.0.1', false],
  ['192.168.4.0/22', '192.168.7.255', true],
  ['192.168.4.0/22', '192.168.8.0', false],
  ['fd00::/8', 'fdff::1', true],
  ['127.0.0.0/8', '::ffff:127.0.0.1', false],
  ['::ffff:127.0.0.0/104', '::ffff:127.0.0.1', true],
])('%s holds %s: %s', (network, address, expected) => {
  expect(read(network).contains(readAddress(address)!)).toBe(expected);
});

test.each([
  ['10.0.0.0/33', 'prefix length from 0 to 32'],
  ['fd00::/129', 'prefix length from 0 to 128'],
  ['10.0.0.0/', 'prefix length'],
  ['10.0.0.0/8/8', 'is not a network'],
  ['10.0.0.0/-1', 'prefix length'],
  ['010.0.0.0/8', 'is not a network'],
  ['10/8', 'is not a network'],
  ['fe80::1%eth0/64', 'is not a network'],
  ['example.com', 'is not a network'],
  ['', 'is not a network'],
  ['10.1.2.3/8', 'write 10.0.0.0/8 for the network or 10.1.2.3/32 for the one address'],
])('"%s" is refused: %s', (text, reason) => {
  const result = parseNetwork(text);
  expect(result).toMatchObject({ ok: false, reason: expect.stringContaining(reason) as string });
});
