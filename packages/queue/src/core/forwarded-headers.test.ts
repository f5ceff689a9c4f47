import { expect, test } from 'vitest';
import { forwardHeaders, headerOf } from './callback-headers.js';

function forwarded(headers: Record<string, string>, authName?: string): Record<string, string> {
  const target = {};
  forwardHeaders(headers, target, authName);
  return target;
}

test('headers of the submitter reach the handler as they were written', () => {
  const headers = { 'X-Tenant': 'acme', Accept: 'text/plain', 'x-empty': '', 'X-B3': '1, 2' };
  expect(forwarded(headers)).toEqual(headers);
});

const reserved = [
  'Connection',
  'Proxy-Connection',
  'Proxy-Authenticate',
  'Proxy-Authorization',
  'Keep-Alive',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'Expect',
  'Host',
  'Content-Type',
  'content-length',
  'Content-Encoding',
  'CONTENT-ANYTHING',
  'Authorization',
  'authorization',
  'Cookie',
  'User-Agent',
  'Webhook-Id',
  'webhook-signature',
  'X-Queue-Name',
  'x-queue-lease-token',
  'X-QUEUE-PROBE',
  'traceparent',
];

test.each(reserved)('%s is reserved for the server', (name) => {
  expect(forwarded({ [name]: 'forged', 'X-Other': 'stays' })).toEqual({ 'X-Other': 'stays' });
});

test('names that only look alike are passed on', () => {
  const headers = { 'X-Content-Type': '1', Cookies: '2', 'X-Queued': '3', Hostname: '4' };
  expect(forwarded(headers)).toEqual(headers);
});

test('a header that Connection names is hop-by-hop too', () => {
  const headers = { connection: 'close, X-Secret', 'x-secret': '1', 'X-Plain': '2' };
  expect(forwarded(headers)).toEqual({ 'X-Plain': '2' });
});

test('a submitter cannot send the header that carries the queue’s credentials', () => {
  expect(forwarded({ 'X-API-KEY': 'forged', 'X-Plain': '2' }, 'x-api-key')).toEqual({
    'X-Plain': '2',
  });
});

test('a header is found whatever its spelling', () => {
  expect(headerOf({ TraceParent: 'a' }, 'traceparent')).toBe('a');
  expect(headerOf({ trace: 'a' }, 'traceparent')).toBeUndefined();
});
