import { expect, test } from 'vitest';
import { isSecretName, scrubJsonLine, scrubText } from './log.js';

test.each([
  'authorization',
  'Proxy-Authorization',
  'cookie',
  'set-cookie',
  'x-api-key',
  'apiKey',
  'token',
  'accessToken',
  'MILLRACE_TOKEN',
  'secret',
  'client_secret',
  'password',
  'private_key',
  'follow_key',
  'credentials',
])('the value of %s is never shown', (name) => {
  expect(isSecretName(name)).toBe(true);
});

test.each(['tokens', 'input_tokens', 'tokens_file', 'secret_ref', 'secret_refs', 'key', 'id'])(
  'the value of %s may be shown',
  (name) => {
    expect(isSecretName(name)).toBe(false);
  },
);

test.each([
  ['got Bearer abc123.def-456', 'got Bearer [hidden]'],
  ['Basic dXNlcjpwYXNz sent', 'Basic [hidden] sent'],
  ['the token mr_0123456789abcdef is old', 'the token mr_[hidden] is old'],
  ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'whsec_[hidden]'],
  ['postgres://me:hunter2@db.example/x', 'postgres://me:[hidden]@db.example/x'],
  ['GET /v1?access_token=abc&limit=5 done', 'GET /v1?access_token=[hidden]&limit=5 done'],
  ['/x?api_key=a.b#c', '/x?api_key=[hidden]#c'],
  ['/x?tokens=5&monkey=1', '/x?tokens=5&monkey=1'],
  ['send a bearer token', 'send a bearer token'],
  ['uses basic authentication', 'uses basic authentication'],
  ['http://127.0.0.1:8081/v1', 'http://127.0.0.1:8081/v1'],
  ['mail me@example.com', 'mail me@example.com'],
])('%j reads as %j', (text, expected) => {
  expect(scrubText(text)).toBe(expected);
});

test('a line of JSON loses its secrets at any depth, and nothing else', () => {
  const line = {
    token: 'abc',
    context_tokens: 1200,
    rotation: { token: 7, secret: '' },
    request: {
      headers: [{ Authorization: 'x' }, { 'x-api-key': ['k1', 'k2'] }],
      raw: ['Host', 'a', 'Cookie', 'sid=1', 'Accept', 'b'],
    },
    key: 'order-7',
    quote: 'she said "token": "x"',
  };
  const clean = scrubJsonLine(`${JSON.stringify(line)}\n`);
  expect(clean.endsWith('}\n')).toBe(true);
  expect(JSON.parse(clean)).toEqual({
    token: '[hidden]',
    context_tokens: 1200,
    rotation: { token: 7, secret: '' },
    request: {
      headers: [{ Authorization: '[hidden]' }, { 'x-api-key': '[hidden]' }],
      raw: ['Host', 'a', 'Cookie', '[hidden]', 'Accept', 'b'],
    },
    key: 'order-7',
    quote: 'she said "token": "x"',
  });
});

test('a redacted line is valid JSON when a secret is next to quotes and escapes', () => {
  const line = JSON.stringify({ text: 'a "Bearer abcdef123456"\nhttp://u:p"@x mr_aaaaaaaa\\' });
  expect(JSON.parse(scrubJsonLine(line))).toEqual({
    text: 'a "Bearer [hidden]"\nhttp://u:p"@x mr_[hidden]\\',
  });
});
