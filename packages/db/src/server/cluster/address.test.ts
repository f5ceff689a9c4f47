import { expect, test } from 'vitest';
import { parseClusterAddress } from './election.js';

test('cluster address: several hosts, default port, TLS', () => {
  expect(parseClusterAddress('etcd://a:1,b,[::1]:3/main')).toEqual({
    endpoints: ['http://a:1', 'http://b:2379', 'http://[::1]:3'],
    name: 'main',
  });
  expect(parseClusterAddress('etcds://a/x').endpoints).toEqual(['https://a:2379']);
});

test.each([
  'etcd://a:1',
  'http://a/x',
  'etcd://a:99999/x',
  'etcd:///x',
  'etcd://a,,b/x',
  'etcd://a/',
])('cluster address: %s is refused', (url) => {
  expect(() => parseClusterAddress(url)).toThrow(/cluster: .*use etcd:\/\//);
});
