import { expect, test } from 'vitest';
import { traceOf } from '../core/callback-headers.js';
import {
  type CallbackParams,
  callbackRequest,
  type CallbackTask,
  credentialsOf,
} from './callback-request.js';
import { sampleConfig } from './delivery.test-support.js';
import type { QueueConfig } from '../core/queue.js';

const now = Date.UTC(2026, 2, 2, 9, 15, 0, 250);
const id = '01JD3Z8Q4M7X2N5V9RTBKWCH6E';
const secrets: Record<string, string> = {
  token: 'abc',
  login: 'user:pass word',
  key: `whsec_${Buffer.from('one key').toString('base64')}`,
  next: `whsec_${Buffer.from('another').toString('base64')}`,
  broken: 'not a signing secret',
};

function request(
  over: Partial<CallbackTask & Pick<CallbackParams, 'leaseToken' | 'trace'>> = {},
  callback: Partial<QueueConfig['callback']> = {},
) {
  const config = sampleConfig({ callback });
  const found = credentialsOf('mail', config.callback, (name) => secrets[name]);
  if (!found.ok) throw new Error(found.reason);
  const headers = over.headers ?? {};
  const { leaseToken = 'l1.token', trace = traceOf(headers, 'l1.token') } = over;
  const task: CallbackTask = {
    id,
    queue: 'mail',
    handlerRef: 'mail.send',
    payloadContentType: 'application/json; charset=utf-8',
    headers,
    attempt: 2,
    redriveCount: 1,
    payload: Uint8Array.of(0, 255, 128),
    ...over,
  };
  const { credentials } = found;
  const { signal } = new AbortController();
  return callbackRequest(task, {
    leaseToken,
    trace,
    config,
    credentials,
    now,
    timeoutMs: 30_000,
    signal,
  });
}

test('the payload goes out unchanged under the headers that the contract names', () => {
  const { headers, ...rest } = request();
  expect(rest).toMatchObject({
    url: 'https://handlers.example.org/run?key=1',
    method: 'POST',
    body: Uint8Array.of(0, 255, 128),
    timeoutMs: 30_000,
    connectTimeoutMs: 5_000,
  });
  expect(headers).toEqual({
    'Content-Type': 'application/json; charset=utf-8',
    'User-Agent': 'millrace-queue',
    traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/),
    'X-Queue-Name': 'mail',
    'X-Queue-Task-Id': id,
    'X-Queue-Handler-Ref': 'mail.send',
    'X-Queue-Attempt': '2',
    'X-Queue-Max-Attempts': '15',
    'X-Queue-Redrive-Count': '1',
    'X-Queue-Deadline': '2026-03-02T09:15:30.250Z',
    'X-Queue-Lease-Token': 'l1.token',
  });
});

test('a probe says so and carries no lease token', () => {
  const { headers } = request({ leaseToken: null });
  expect(headers).toMatchObject({ 'X-Queue-Probe': 'true' });
  expect(headers).not.toHaveProperty('X-Queue-Lease-Token');
});

test('the submitter’s headers come along, but never in the server’s name', () => {
  const { headers } = request({
    headers: { 'X-Tenant': 'acme', 'x-queue-name': 'forged', 'content-type': 'text/forged' },
  });
  expect(headers).toMatchObject({ 'X-Tenant': 'acme', 'X-Queue-Name': 'mail' });
  expect(Object.values(headers!)).not.toContain('forged');
  expect(Object.values(headers!)).not.toContain('text/forged');
});

test('the submitter’s trace and its state go on; a state without a trace does not', () => {
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
  const traceparent = `00-${trace}-00f067aa0ba902b7-01`;
  const traced = request({ headers: { traceparent, Tracestate: 'a=1' } }).headers!;
  expect(traced['traceparent']).toContain(trace);
  expect(traced['Tracestate']).toBe('a=1');
  const untraced = request({ headers: { traceparent: 'broken', Tracestate: 'a=1' } }).headers!;
  expect(untraced).not.toHaveProperty('Tracestate');
});

test('each kind of auth has its header', () => {
  const auths: [QueueConfig['callback']['auth'], Record<string, string>][] = [
    [{ type: 'bearer', secret_ref: 'token' }, { Authorization: 'Bearer abc' }],
    [{ type: 'basic', secret_ref: 'login' }, { Authorization: 'Basic dXNlcjpwYXNzIHdvcmQ=' }],
    [{ type: 'header', name: 'X-Api-Key', secret_ref: 'token' }, { 'X-Api-Key': 'abc' }],
  ];
  for (const [auth, expected] of auths) {
    expect(request({ headers: { 'x-api-KEY': 'forged' } }, { auth }).headers).toMatchObject(
      expected,
    );
  }
  const forged = request(
    { headers: { 'x-api-KEY': 'forged' } },
    { auth: { type: 'header', name: 'X-Api-Key', secret_ref: 'token' } },
  );
  expect(Object.values(forged.headers!)).not.toContain('forged');
});

test('a signed request has one signature for each secret', () => {
  const signing = { scheme: 'standard_webhooks' as const, secret_refs: ['key', 'next'] };
  const { headers } = request({}, { signing });
  expect(headers).toMatchObject({ 'webhook-id': id, 'webhook-timestamp': '1772442900' });
  expect(headers!['webhook-signature']).toMatch(/^v1,\S{44} v1,\S{44}$/);
});

test.each(['missing', 'broken'])('the %s secret is named, and its value is not', (name) => {
  const { callback } = sampleConfig({
    callback: { signing: { scheme: 'standard_webhooks', secret_refs: [name] } },
  });
  const found = credentialsOf('mail', callback, (ref) => secrets[ref]);
  expect(found).toMatchObject({ ok: false, reason: expect.stringContaining(name) });
  expect(JSON.stringify(found)).not.toContain('not a signing secret');
});

test('a missing auth secret is named', () => {
  const { callback } = sampleConfig({ callback: { auth: { type: 'basic', secret_ref: 'gone' } } });
  expect(credentialsOf('mail', callback, () => undefined)).toEqual({
    ok: false,
    reason: 'the secret gone does not exist or is not open to this queue',
  });
});
