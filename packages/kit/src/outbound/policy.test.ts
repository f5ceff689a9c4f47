import { describe, expect, test } from 'vitest';
import { parseNetwork } from './address.js';
import { callbackPolicy, webhookPolicy } from './allowlist.js';

function opening(...texts: string[]) {
  return callbackPolicy(
    texts.map((text) => {
      const result = parseNetwork(text);
      if (!result.ok) throw new Error(result.reason);
      return result.network;
    }),
  );
}

const notPublic = [
  '127.0.0.1',
  '169.254.169.254',
  '10.0.0.1',
  '172.16.0.1',
  '192.168.0.1',
  '100.64.0.1',
  '0.0.0.0',
  '0.1.2.3',
  '224.0.0.1',
  '255.255.255.255',
  '198.18.0.1',
  '192.0.2.1',
  '240.0.0.1',
  '::',
  '::1',
  'fe80::1',
  'fec0::1',
  'fd00::1',
  'ff02::1',
  '2001:db8::1',
  '::ffff:8.8.8.8',
  '::8.8.8.8',
  '64:ff9b::8.8.8.8',
  '64:ff9b:1::808:808',
  '2002:808:808::',
  '2001::1',
  'not an address',
];

describe('callbacks', () => {
  test.each(notPublic)('%s is blocked without an opening', (address) => {
    expect(callbackPolicy().denyReason(address)).toContain(address);
  });

  test.each(['8.8.8.8', '2606:4700:4700::1111'])('%s is public and free', (address) => {
    expect(callbackPolicy().denyReason(address)).toBeUndefined();
  });

  test.each([
    ['127.0.0.0/8', '127.0.0.1'],
    ['10.0.0.0/8', '10.9.8.7'],
    ['100.64.0.0/10', '100.64.1.1'],
    ['fd00::/8', 'fd12::1'],
    ['::1/128', '::1'],
    ['64:ff9b::/96', '64:ff9b::8.8.8.8'],
    ['169.254.169.254/32', '169.254.169.254'],
    ['169.254.0.0/16', '169.254.1.1'],
    ['fd00:ec2::254/128', 'fd00:ec2::254'],
    ['0.0.0.0/0', '192.168.0.1'],
  ])('%s opens %s', (network, address) => {
    expect(opening(network).denyReason(address)).toBeUndefined();
  });

  test.each([
    ['127.0.0.0/8', '::1'],
    ['127.0.0.0/8', '::ffff:127.0.0.1'],
    ['127.0.0.0/8', '64:ff9b::7f00:1'],
    ['127.0.0.0/8', '2002:7f00:1::'],
    ['10.0.0.0/8', '192.168.0.1'],
    ['0.0.0.0/0', '0.0.0.0'],
    ['0.0.0.0/0', '224.0.0.1'],
    ['0.0.0.0/0', '255.255.255.255'],
    ['::/0', '::'],
    ['::/0', 'ff02::1'],
  ])('%s does not open %s', (network, address) => {
    expect(opening(network).denyReason(address)).toBeDefined();
  });

  test.each([
    ['0.0.0.0/0', '169.254.169.254'],
    ['100.64.0.0/10', '100.100.100.200'],
    ['fc00::/7', 'fd00:ec2::254'],
    ['::/0', 'fe80::1'],
  ])('%s is too wide to open %s, where credentials are handed out', (network, address) => {
    expect(opening(network).denyReason(address)).toContain('no matching allowlist entry opens');
  });

  test('policies that open the same have one key, others do not share it', () => {
    const key = opening('10.0.0.0/8', '127.0.0.0/8').key;
    expect(opening('127.0.0.0/8', '10.0.0.0/8', '10.0.0.0/8').key).toBe(key);
    expect(opening('127.0.0.0/8').key).not.toBe(key);
    expect(callbackPolicy().key).not.toBe(key);
    expect(webhookPolicy.key).not.toBe(callbackPolicy().key);
  });
});

describe('webhooks', () => {
  test.each([
    '127.0.0.1',
    '::1',
    '10.0.0.1',
    '192.168.1.20',
    '100.64.0.1',
    'fd12::1',
    '8.8.8.8',
    '::ffff:127.0.0.1',
    '64:ff9b::8.8.8.8',
    '64:ff9b:1::8.8.8.8',
    '2606:4700::1',
  ])('%s may be called', (address) => {
    expect(webhookPolicy.denyReason(address)).toBeUndefined();
  });

  test.each([
    '169.254.169.254',
    '169.254.0.1',
    'fe80::1',
    'fe80::1%eth0',
    'fd00:ec2::254',
    'fd20:ce::254',
    '100.100.100.200',
    '::ffff:169.254.169.254',
    '::ffff:100.100.100.200',
    '::a9fe:a9fe',
    '::ffff:0:a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b:1:a9fe:a9:fe00::',
    '2002:a9fe:a9fe::',
    '2001:0:1:1::5601:5601',
    '224.0.0.1',
    'ff02::1',
    '0.0.0.0',
    '::',
    '::ffff:0.0.0.0',
    '255.255.255.255',
    'not an address',
  ])('%s is refused', (address) => {
    expect(webhookPolicy.denyReason(address)).toContain(address);
  });
});
