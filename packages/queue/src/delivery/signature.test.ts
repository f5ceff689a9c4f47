import { createHmac, randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { signatureOf, signingKeyOf } from '@millrace/kit/webhooks';

const secret = `whsec_${Buffer.from('a key of twenty-four by.').toString('base64')}`;
const other = `whsec_${Buffer.from('another one while we rotate').toString('base64')}`;
const id = '01JD3Z8Q4M7X2N5V9RTBKWCH6E';
const keys = (...secrets: string[]) => secrets.map((each) => signingKeyOf(each)!);
const bytesOf = (text: string) => new TextEncoder().encode(text);

function headersOf(body: Uint8Array, ...secrets: string[]) {
  const timestampSeconds = Math.floor(Date.now() / 1000);
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signatureOf({ id, timestampSeconds, body }, keys(...secrets)),
  };
}

test.each(['{"amount":5}', '"Größe 😀 \\n"', '[]'])('the published library verifies %s', (text) => {
  const headers = headersOf(bytesOf(text), secret);
  expect(new Webhook(secret).verify(text, headers)).toEqual(JSON.parse(text));
});

test('a task without a payload is signed as well', () => {
  const headers = headersOf(new Uint8Array(0), secret);
  expect(() => new Webhook(secret).verify('', headers)).not.toThrow();
  expect(() => new Webhook(other).verify('', headers)).toThrow(/signature/i);
});

test('the published library refuses another body, id, time or secret', () => {
  const text = '{"amount":5}';
  const headers = headersOf(bytesOf(text), secret);
  const verifier = new Webhook(secret);
  expect(() => verifier.verify('{"amount":6}', headers)).toThrow(/signature/i);
  expect(() => verifier.verify(text, { ...headers, 'webhook-id': 'other' })).toThrow(/signature/i);
  expect(() => new Webhook(other).verify(text, headers)).toThrow(/signature/i);
});

test('while secrets rotate, each of them verifies the same request', () => {
  const headers = headersOf(bytesOf('{}'), secret, other);
  expect(headers['webhook-signature']).toMatch(/^v1,[A-Za-z0-9+/]+={0,2} v1,[A-Za-z0-9+/]+={0,2}$/);
  expect(new Webhook(secret).verify('{}', headers)).toEqual({});
  expect(new Webhook(other).verify('{}', headers)).toEqual({});
});

test('a binary payload is signed over its raw bytes, not over what they look like as text', () => {
  const body = Uint8Array.from([0, 255, 254, 0x80, 10, ...randomBytes(64)]);
  const headers = headersOf(body, secret);
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signed = Buffer.concat([bytesOf(`${id}.${headers['webhook-timestamp']}.`), body]);
  const expected = createHmac('sha256', key).update(signed).digest('base64');
  expect(headers['webhook-signature']).toBe(`v1,${expected}`);
});

test('what is not whsec_ and base64 is no secret to sign with', () => {
  expect(signingKeyOf(secret)).toEqual(Buffer.from('a key of twenty-four by.'));
  const faulty = ['', 'whsec_', 'secret', 'whsec_abc', 'whsec_ab!d', 'WHSEC_YWJj', 'whsec_YWJj='];
  for (const each of faulty) expect(signingKeyOf(each), each).toBeUndefined();
});
