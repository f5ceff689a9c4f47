import { describe, expect, test } from 'vitest';
import type { TestRequest } from './support/http-client.js';
import {
  badBody,
  batch,
  purge,
  redrive,
  startRefusing,
  submit,
  ulid,
  type Case,
} from './support/bad-input.js';

const { server, refusesAll, leavesNoTrace } = await startRefusing();
const later = (ms: number) => new Date(Date.now() + ms).toISOString();
const task = (more: Record<string, unknown>): Partial<TestRequest> => ({
  body: { handler_ref: 'a', ...more },
});
const badTask = (name: string, more: Record<string, unknown>): Case => [
  name,
  task(more),
  422,
  'INVALID_TASK',
];

describe('tasks', () => {
  const cases: Case[] = [
    badBody('a list', [], 'INVALID_TASK'),
    badBody('null', null, 'INVALID_TASK'),
    ['a string', { body: '"a"' }, 422, 'INVALID_TASK'],
    badBody('no handler', {}, 'INVALID_TASK'),
    badTask('an empty handler', { handler_ref: '' }),
    badTask('a handler that is a number', { handler_ref: 5 }),
    badTask('a handler with a space', { handler_ref: 'a b' }),
    badTask('a handler that starts with a dot', { handler_ref: '.a' }),
    badTask('a handler with a line break', { handler_ref: 'a\r\nX: y' }),
    badTask('a handler of 257 characters', { handler_ref: 'a'.repeat(257) }),
    badTask('a handler beyond ASCII', { handler_ref: 'mäil' }),
    badTask('an unknown key', { prioritty: 3 }),
    badTask('a key in another case', { Priority: 3 }),
    badTask('a read-only key', { status: 'PENDING' }),
    badTask('null for an id', { id: null }),
    badTask('an empty id', { id: '' }),
    badTask('an id that is no ULID', { id: 'my-task' }),
    badTask('an id with an L', { id: '01JD3Z8Q4M7X2N5V9RTBKWCHLE' }),
    badTask('an id with an O', { id: '01JD3Z8Q4M7X2N5V9RTBKWCHOE' }),
    badTask('an id above the largest', { id: '8ZZZZZZZZZZZZZZZZZZZZZZZZZ' }),
    badTask('an id with a space', { id: `${ulid} ` }),
    badTask('a payload that is a number', { payload: 5 }),
    badTask('a payload that is an object', { payload: { a: 1 } }),
    badTask('a payload of plain text', { payload: 'hello' }),
    badTask('base64 without padding', { payload: 'aGVsbG8' }),
    badTask('base64 with too much padding', { payload: 'aGVsbG8==' }),
    badTask('base64 for URLs', { payload: '-_-_' }),
    badTask('base64 with a line break', { payload: 'aGVs\nbG8=' }),
    badTask('base64 with a space', { payload: 'aGVs bG8=' }),
    badTask('base64 with bits that are not zero', { payload: 'aGVsbG9=' }),
    badTask('base64 with padding in the middle', { payload: 'aA==aA==' }),
    badTask('padding alone', { payload: '====' }),
    badTask('a content type without a slash', { payload_content_type: 'json' }),
    badTask('an empty content type', { payload_content_type: '' }),
    badTask('a content type with a line break', { payload_content_type: 'a/b\r\nX: y' }),
    badTask('a content type of 257 characters', { payload_content_type: `a/${'b'.repeat(255)}` }),
    badTask('headers that are a list', { headers: [] }),
    badTask('headers that are null', { headers: null }),
    badTask('a header with an empty name', { headers: { '': 'a' } }),
    badTask('a header name with a space', { headers: { 'X A': 'a' } }),
    badTask('a header name with a colon', { headers: { 'X:': 'a' } }),
    badTask('a header name beyond ASCII', { headers: { Ä: 'a' } }),
    badTask('a header that is a number', { headers: { X: 5 } }),
    badTask('a header that is a list', { headers: { X: ['a'] } }),
    badTask('a header with a line break', { headers: { X: 'a\r\nY: b' } }),
    badTask('a header with a NUL', { headers: { X: 'a\0' } }),
    badTask('a header with a tab', { headers: { X: 'a\tb' } }),
    badTask('a header with a leading space', { headers: { X: ' a' } }),
    badTask('a header with a trailing space', { headers: { X: 'a ' } }),
    badTask('a header beyond ASCII', { headers: { X: 'ä' } }),
    badTask('65 headers', {
      headers: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`X${n}`, 'a'])),
    }),
    badTask('headers of more than 16 KiB', { headers: { X: 'a'.repeat(16_384) } }),
    badTask('a time without a zone', { run_at: '2030-01-31T09:30:00' }),
    badTask('a date', { run_at: '2030-01-31' }),
    badTask('a day that does not exist', { run_at: '2030-02-30T00:00:00Z' }),
    badTask('a leap second', { run_at: '2030-06-30T23:59:60Z' }),
    badTask('a time as a number', { run_at: 1_900_000_000 }),
    badTask('a time in 31 days', { run_at: later(31 * 86_400_000) }),
    badTask('a year that is none in UTC', { expires_at: '9999-12-31T23:59:59-01:00' }),
    badTask('run_at and delay_ms', { run_at: later(1_000), delay_ms: 5 }),
    badTask('a negative delay', { delay_ms: -1 }),
    badTask('half a millisecond', { delay_ms: 0.5 }),
    badTask('a delay of more than 30 days', { delay_ms: 2_592_000_001 }),
    badTask('a delay as text', { delay_ms: '5' }),
    badTask('a delay beyond all numbers', { delay_ms: 1e300 }),
    badTask('an expiry in the past', { expires_at: later(-1_000) }),
    badTask('an expiry that is null', { expires_at: null }),
    badTask('a priority of 10', { priority: 10 }),
    badTask('a priority of -1', { priority: -1 }),
    badTask('a priority of 4.5', { priority: 4.5 }),
    badTask('a priority as text', { priority: '4' }),
    badTask('an empty group', { group_key: '' }),
    badTask('a group with a line break', { group_key: 'a\nb' }),
    badTask('a group with a C1 control', { group_key: 'a\u009b' }),
    badTask('a unique key with an escape', { unique_key: 'a\u001b[2J' }),
    badTask('a group with half a surrogate pair', { group_key: 'a\ud800' }),
    badTask('a group of 257 characters', { group_key: 'a'.repeat(257) }),
    badTask('a group that is a number', { group_key: 5 }),
    [
      'a payload above the limit of the queue',
      { path: '/v1/queues/mail.small/tasks', ...task({ payload: 'aGVsbG8=' }) },
      413,
      'PAYLOAD_TOO_LARGE',
    ],
    [
      'a payload above 1 MiB',
      task({ payload: Buffer.alloc(2 ** 20 + 1).toString('base64') }),
      413,
      'PAYLOAD_TOO_LARGE',
    ],
    [
      'a bad payload that is too large as well',
      { path: '/v1/queues/mail.small/tasks', ...task({ payload: 'aGVsbG8' }) },
      422,
      'INVALID_TASK',
    ],
    ['a batch that is one task', { ...batch, body: { handler_ref: 'a' } }, 422, 'INVALID_TASK'],
    ['a batch that is null', { ...batch, body: null }, 422, 'INVALID_TASK'],
    [
      'a batch of 1,001 tasks',
      { ...batch, body: Array.from({ length: 1_001 }, () => ({ handler_ref: 'a' })) },
      422,
      'BATCH_TOO_LARGE',
    ],
  ];
  refusesAll(submit, cases);
});

describe('selectors', () => {
  const bad = (name: string, body: unknown): Case => badBody(name, body, 'INVALID_SELECTOR');
  const shared = [
    bad('nothing', {}),
    bad('a list', []),
    bad('null', null),
    bad('both halves', { ids: [ulid], filter: {} }),
    bad('an unknown key', { filter: {}, force: true }),
    bad('a misspelt filter', { filters: {} }),
    bad('ids that are text', { ids: ulid }),
    bad('ids that are null', { ids: null }),
    bad('an id that is none', { ids: ['nope'] }),
    bad('an id that is a number', { ids: [5] }),
    bad('1,001 ids', { ids: Array.from({ length: 1_001 }, () => ulid) }),
    bad('a filter that is null', { filter: null }),
    bad('a filter that is a list', { filter: [] }),
    bad('an unknown key of the filter', { filter: { error: 'X' } }),
    bad('an empty error type', { filter: { error_type: '' } }),
    bad('an error type that is null', { filter: { error_type: null } }),
    bad('a handler with a space', { filter: { handler_ref: 'a b' } }),
    bad('a status as text', { filter: { http_status: '500' } }),
    bad('a status of 99', { filter: { http_status: 99 } }),
    bad('a status of 600', { filter: { http_status: 600 } }),
    bad('a time without a zone', { filter: { from: '2026-03-02T00:00:00' } }),
    bad('a time as a number', { filter: { to: 1_772_442_900 } }),
    bad('a year that is none in UTC', { filter: { to: '9999-12-31T23:59:59-01:00' } }),
    bad('a dry run that is text', { filter: {}, dry_run: 'true' }),
    bad('a dry run without a selection', { dry_run: true }),
  ];
  describe('of a purge', () => {
    refusesAll(purge, [...shared, bad('a rate', { filter: {}, rate_per_second: 5 })]);
  });
  describe('of a redrive', () => {
    refusesAll(redrive, [
      ...shared,
      bad('a negative rate', { filter: {}, rate_per_second: -1 }),
      bad('a rate of 0.5', { filter: {}, rate_per_second: 0.5 }),
      bad('a rate above a million', { filter: {}, rate_per_second: 1_000_001 }),
      bad('a rate as text', { filter: {}, rate_per_second: '5' }),
    ]);
  });
});

test('a bad task says where, for each fault', async () => {
  const answer = await server.as('root', {
    ...submit,
    body: { handler_ref: 'a', priority: 10, prioritty: 1, delay_ms: -1 },
  });
  expect(answer.body['errors']).toEqual(
    expect.arrayContaining([
      { pointer: '/prioritty', message: 'is not a known field; did you mean "priority"?' },
      { pointer: '/priority', message: 'must be at most 9' },
      { pointer: '/delay_ms', message: 'must be at least 0' },
    ]),
  );
});

leavesNoTrace();
