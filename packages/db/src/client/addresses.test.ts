import { expect, test } from 'vitest';
import { parseAddresses } from './address.js';

const urls = (given: string | string[]) => parseAddresses(given).map(({ url }) => url);

test('addresses: one URL may name several nodes', () => {
  expect(urls('grpc://a:1,b:2, c')).toEqual(['grpc://a:1', 'grpc://b:2', 'grpc://c']);
  expect(urls('grpcs://a:1,grpcs://b:2')).toEqual(['grpcs://a:1', 'grpcs://b:2']);
});

test('addresses: an array of nodes, each once', () => {
  expect(urls(['grpc://a:1', 'grpc://b:2', 'grpc://a:1'])).toEqual(['grpc://a:1', 'grpc://b:2']);
});

test('addresses: a single server and a socket with a comma stay as they are', () => {
  expect(urls('grpc://a:1')).toEqual(['grpc://a:1']);
  expect(parseAddresses('unix:/tmp/a,b.sock')).toMatchObject([
    { place: { path: '/tmp/a,b.sock' } },
  ]);
});

test.each([[[]], ['grpc://a:1,'], ['grpc://a:1,grpcs://b:2'], ['http://a,b']])(
  'addresses: %j is refused',
  (given) => {
    expect(() => parseAddresses(given)).toThrow(/address|mixes/);
  },
);
