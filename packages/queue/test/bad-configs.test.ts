import { describe, expect, test } from 'vitest';
import { badBody, put, startRefusing, type Case } from './support/bad-input.js';
import { plainConfig } from './support/server.js';

const { server, refusesAll, leavesNoTrace } = await startRefusing();

describe('configs', () => {
  const url = plainConfig.callback.url;
  const bad = (name: string, body: unknown): Case => badBody(name, body, 'INVALID_CONFIG');
  const callback = (name: string, more: Record<string, unknown>) =>
    bad(name, { callback: { url, ...more } });
  const part = (name: string, more: Record<string, unknown>) =>
    bad(name, { ...plainConfig, ...more });
  const cases: Case[] = [
    bad('nothing', {}),
    bad('a list', []),
    bad('null', null),
    bad('a callback that is text', { callback: url }),
    bad('a callback without a URL', { callback: {} }),
    part('an unknown key', { calback: {} }),
    callback('an unknown key of the callback', { timeout: 5 }),
    callback('a URL that is null', { url: null }),
    callback('an empty URL', { url: '' }),
    callback('a URL without a scheme', { url: 'example.org/hooks' }),
    callback('a URL of 2,049 characters', {
      url: `https://a.example.org/hooks/${'a'.repeat(2_021)}`,
    }),
    callback('another protocol', { protocol: 'grpc' }),
    callback('a time-out of 99 ms', { timeout_ms: 99 }),
    callback('a time-out of more than 30 minutes', { timeout_ms: 1_800_001 }),
    callback('a time-out as text', { timeout_ms: '30s' }),
    callback('an async time-out below a second', { async_timeout_ms: 999 }),
    callback('auth that is text', { auth: 'none' }),
    callback('auth without a type', { auth: {} }),
    callback('auth of an unknown type', { auth: { type: 'digest', secret_ref: 'mail-token' } }),
    callback('bearer without a secret', { auth: { type: 'bearer' } }),
    callback('bearer with the secret itself', { auth: { type: 'bearer', token: 'abc' } }),
    callback('none with a secret', { auth: { type: 'none', secret_ref: 'mail-token' } }),
    callback('a secret that is not there', { auth: { type: 'bearer', secret_ref: 'nope' } }),
    callback('a secret of other queues', { auth: { type: 'bearer', secret_ref: 'other-token' } }),
    callback('a basic secret without a colon', {
      auth: { type: 'basic', secret_ref: 'mail-token' },
    }),
    callback('a header without a name', { auth: { type: 'header', secret_ref: 'mail-token' } }),
    callback('a header named host', {
      auth: { type: 'header', name: 'Host', secret_ref: 'mail-token' },
    }),
    callback('a header of the server', {
      auth: { type: 'header', name: 'X-Queue-Name', secret_ref: 'mail-token' },
    }),
    callback('a header with a line break', {
      auth: { type: 'header', name: 'X\r\nY', secret_ref: 'mail-token' },
    }),
    callback('signing without secrets', { signing: { secret_refs: [] } }),
    callback('signing by another scheme', {
      signing: { scheme: 'hmac', secret_refs: ['mail-signing'] },
    }),
    callback('signing with a secret that is not there', { signing: { secret_refs: ['nope'] } }),
    callback('signing with a secret of another form', { signing: { secret_refs: ['mail-token'] } }),
    callback('signing with the same secret twice', {
      signing: { secret_refs: ['mail-signing', 'mail-signing'] },
    }),
    part('no attempts', { retry: { max_attempts: 0 } }),
    part('half an attempt', { retry: { max_attempts: 1.5 } }),
    part('a backoff below 10 ms', { retry: { initial_backoff_ms: 9 } }),
    part('a multiplier below 1', { retry: { multiplier: 0.9 } }),
    part('a success to retry', { retry: { retry_statuses: [200] } }),
    part('the same status twice', { retry: { retry_statuses: [404, 404] } }),
    part('a status both to retry and dead', {
      retry: { retry_statuses: [404], dead_statuses: [404] },
    }),
    part('a payload limit of 0', { limits: { max_payload_bytes: 0 } }),
    part('a payload limit above 8 MiB', { limits: { max_payload_bytes: 8_388_609 } }),
    part('none in flight', { limits: { max_in_flight: 0 } }),
    part('a negative rate', { limits: { dispatch_per_second: -1 } }),
    part('a grace below 100 ms', { lease: { grace_ms: 99 } }),
    part('a negative retention', { retention: { dead_ms: -1 } }),
    part('a failure ratio of 0', { circuit_breaker: { failure_ratio: 0 } }),
    part('a failure ratio above 1', { circuit_breaker: { failure_ratio: 1.1 } }),
    part('a breaker that is on by text', { circuit_breaker: { enabled: 'yes' } }),
    part('an unknown ordering', { ordering: { mode: 'fifo' } }),
    part('a description that is too long', { description: 'a'.repeat(1_025) }),
    part('a description with half a surrogate pair', { description: '\udc00' }),
    part('another name', { name: 'other' }),
    part('another pause', { paused: true }),
    part('another version', { version: 99 }),
    part('another birthday', { created_at: '2020-01-01T00:00:00.000Z' }),
    [
      'a name that cannot be a queue',
      { path: '/v1/admin/queues/NO/config', body: plainConfig },
      422,
      'INVALID_CONFIG',
    ],
    [
      'a name with a colon',
      { path: '/v1/admin/queues/a:b/config', body: plainConfig },
      422,
      'INVALID_CONFIG',
    ],
    [
      'a name of 129 characters',
      { path: `/v1/admin/queues/${'a'.repeat(129)}/config`, body: plainConfig },
      422,
      'INVALID_CONFIG',
    ],
    [
      'a version of a queue that is not there',
      { path: '/v1/admin/queues/mail.new/config', body: { ...plainConfig, version: 1 } },
      422,
      'INVALID_CONFIG',
    ],
    [
      'If-Match of another version',
      { body: plainConfig, headers: { 'if-match': '"99"' } },
      412,
      'PRECONDITION_FAILED',
    ],
    [
      'If-Match of another version, without quotes',
      { body: plainConfig, headers: { 'if-match': '7' } },
      412,
      'PRECONDITION_FAILED',
    ],
    [
      'If-Match with a weak tag',
      { body: plainConfig, headers: { 'if-match': 'W/"1"' } },
      412,
      'PRECONDITION_FAILED',
    ],
    [
      'If-Match of a queue that is not there',
      { path: '/v1/admin/queues/mail.new/config', body: plainConfig, headers: { 'if-match': '*' } },
      412,
      'PRECONDITION_FAILED',
    ],
    [
      'a bad config before If-Match',
      { body: {}, headers: { 'if-match': '"99"' } },
      422,
      'INVALID_CONFIG',
    ],
  ];
  refusesAll(put, cases);
});

describe('callback URLs', () => {
  const off = (url: string): Case => [
    url.slice(0, 60),
    { body: { callback: { url } } },
    422,
    'CALLBACK_URL_NOT_ALLOWED',
  ];
  const cases: Case[] = [
    'https://evil.example/hooks',
    'https://example.org/hooks',
    'https://a.example.org/other',
    'https://a.example.org/hooksmith',
    'https://a.example.org/hooks/../other',
    'https://a.example.org/hooks/%2e%2e/other',
    'http://a.example.org/hooks',
    'https://a.example.org:8443/hooks',
    'https://user@a.example.org/hooks',
    'https://user:password@a.example.org/hooks',
    'https://a.example.org.evil.example/hooks',
    'https://evil.example/?https://a.example.org/hooks',
    'https://evil.example#a.example.org/hooks',
    'https://a.example.org\\@evil.example/hooks',
    'ftp://a.example.org/hooks',
    'file:///etc/passwd',
    'javascript://a.example.org/hooks',
    'http://',
    'https://[::1',
    'http://10.0.0.1/run',
    'http://169.254.169.254/latest/meta-data',
    'http://[::1]:9000/run',
    'http://[::ffff:127.0.0.1]:9000/run',
    'http://[64:ff9b::7f00:1]/run',
    'http://[2002:7f00:1::]/run',
    'http://localhost:9000/run',
    'http://0.0.0.0:9000/run',
    'https://127.0.0.1:9000/run',
    'http://127.0.0.1:0/run',
  ].map(off);
  refusesAll(put, cases);
});

test('a bad config says where, for each fault', async () => {
  const config = await server.as('root', {
    ...put,
    body: {
      callback: {
        url: plainConfig.callback.url,
        auth: { type: 'bearer', secret_ref: 'nope' },
        signing: { secret_refs: ['mail-signing', 'mail-token'] },
      },
      retry: { retry_statuses: [404], dead_statuses: [410, 404] },
    },
  });
  const pointers = (config.body['errors'] as { pointer: string }[]).map(({ pointer }) => pointer);
  expect(pointers).toEqual([
    '/retry/dead_statuses/1',
    '/callback/auth/secret_ref',
    '/callback/signing/secret_refs/1',
  ]);
});

leavesNoTrace();
