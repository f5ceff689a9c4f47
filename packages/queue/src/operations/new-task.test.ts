import { openApiDocument } from '@millrace/contract/documents';
import type { Refusal } from '@millrace/kit/errors';
import { DocumentSchemas } from '@millrace/kit/http';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Queue } from '../core/queue.js';
import { bodyChecks } from './base/bodies.js';
import { newTask } from './submit.js';

const checks = bodyChecks(new DocumentSchemas(openApiDocument('queue')));
const now = Date.parse('2026-03-02T10:00:00Z');
const config = { limits: { max_payload_bytes: 1_024, max_pending: 9 } };
const queue = { name: 'mail', config } as Queue;

function read(body: Record<string, unknown>) {
  const newId = () => '01JD3Z8Q4M7X2N5V9RTBKWCH6E';
  return newTask(checks.task, { handler_ref: 'a', ...body }, { queue, now, by: 'ada', newId });
}

function codeOf(body: Record<string, unknown>): string {
  try {
    read(body);
    return 'accepted';
  } catch (error) {
    return (error as Refusal).code;
  }
}

test('exactly the canonical base64 of bytes is a payload', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      const text = Buffer.from(bytes).toString('base64');
      expect(Buffer.from(read({ payload: text }).payload)).toEqual(Buffer.from(bytes));
    }),
  );
  const letters = fc.constantFrom(...'ABCwxyz0189+/=-_ \n'.split(''));
  fc.assert(
    fc.property(fc.string({ unit: letters, maxLength: 12 }), (text) => {
      const isCanonical = Buffer.from(text, 'base64').toString('base64') === text;
      expect(codeOf({ payload: text })).toBe(isCanonical ? 'accepted' : 'INVALID_TASK');
    }),
    { numRuns: 2_000 },
  );
});

test('a payload may have as many bytes as the queue allows', () => {
  const payload = (length: number) => Buffer.alloc(length).toString('base64');
  expect(codeOf({ payload: payload(1_024) })).toBe('accepted');
  expect(codeOf({ payload: payload(1_025) })).toBe('PAYLOAD_TOO_LARGE');
});

test('headers may have 16 KiB together, names counted', () => {
  const headers = (length: number) => ({ headers: { Ab: 'x'.repeat(length - 4), C: 'y' } });
  expect(codeOf(headers(16_384))).toBe('accepted');
  expect(codeOf(headers(16_385))).toBe('INVALID_TASK');
});

test('a start may be 30 days ahead, to the millisecond', () => {
  const at = (ms: number) => new Date(now + ms).toISOString();
  const days = 30 * 86_400_000;
  expect(read({ run_at: at(days) }).dueAt).toBe(now + days);
  expect(codeOf({ run_at: at(days + 1) })).toBe('INVALID_TASK');
  expect(read({ delay_ms: days }).dueAt).toBe(now + days);
  expect(read({ run_at: at(-5_000) }).dueAt).toBe(now);
  expect(read({ delay_ms: 0 }).dueAt).toBe(now);
});

test('an expiry must be in the future, and may come before the start', () => {
  const at = (ms: number) => new Date(now + ms).toISOString();
  expect(codeOf({ expires_at: at(0) })).toBe('INVALID_TASK');
  expect(read({ expires_at: at(1) }).expiresAt).toBe(now + 1);
  expect(codeOf({ expires_at: at(1), delay_ms: 60_000 })).toBe('accepted');
});

test('what is left out has its default', () => {
  expect(read({})).toEqual({
    id: '01JD3Z8Q4M7X2N5V9RTBKWCH6E',
    queue: 'mail',
    handlerRef: 'a',
    payload: new Uint8Array(0),
    payloadContentType: 'application/octet-stream',
    headers: {},
    priority: 4,
    groupKey: null,
    dueAt: now,
    expiresAt: null,
    isDebounced: false,
    options: undefined,
    submittedBy: 'ada',
    maxPending: 9,
  });
});
