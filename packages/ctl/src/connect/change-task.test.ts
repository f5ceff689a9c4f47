import { isUlid, ulidTime } from '@millrace/kit/ulid';
import type { WatchChange, WatchMessage } from '@millrace/db';
import { expect, test } from 'vitest';
import { needsBefore, tasksOf } from './change-task.js';
import type { ConnectorConfig } from './connectors-file.js';

const config: ConnectorConfig = {
  name: 'orders-mail',
  collection: 'orders',
  on: ['insert', 'update', 'delete'],
  filter: undefined,
  queue: 'mail',
  handler_ref: 'mail.send',
  payload: 'after',
  place: 'connectors.yaml:2',
};
const at = new Date('2026-03-02T09:15:00.000Z');
const record = (rev: number, data: object) =>
  ({
    id: '01JD3Z8Q4M7X2N5V9RTBKWCH6E',
    key: 'ö1',
    rev,
    data,
    createdAt: at,
    updatedAt: at,
    seq: 7,
  }) as never;
const base = { collection: 'orders', entered: false, left: false };
const inserted: WatchChange = { ...base, op: 'insert', record: record(1, { total: 5 }) };
const updated: WatchChange = {
  ...base,
  op: 'update',
  record: record(2, { total: 6 }),
  before: record(1, { total: 5 }),
};
const removed = { id: '01JD3Z8Q4M7X2N5V9RTBKWCH6E', key: 'ö1', rev: 2, seq: 8 };
const expired: WatchChange = {
  ...base,
  op: 'expire',
  record: removed,
  before: record(2, { total: 6 }),
};

function message(...changes: WatchChange[]): WatchMessage {
  const rest = { epoch: 1, resumeToken: 't', leaderSeq: 9, chainHash: 0n as never };
  return { kind: 'changes', seq: 7, committedAt: at, changes, ...rest };
}

const payloads = (changes: WatchChange[], more: Partial<ConnectorConfig> = {}) =>
  tasksOf(message(...changes), { ...config, ...more }).map(
    ({ payload, payload_content_type: type }) => [Buffer.from(payload!, 'base64').toString(), type],
  );

test('task: has the document, the change in headers and an id by the time of the commit', () => {
  const [task] = tasksOf(message(inserted), config);
  expect(task).toMatchObject({
    handler_ref: 'mail.send',
    payload_content_type: 'application/json',
    group_key: '01JD3Z8Q4M7X2N5V9RTBKWCH6E',
    headers: {
      'X-Change-Op': 'insert',
      'X-Change-Collection': 'orders',
      'X-Change-Seq': '7',
      'X-Record-Id': '01JD3Z8Q4M7X2N5V9RTBKWCH6E',
      'X-Record-Key': '%C3%B61',
    },
  });
  expect(isUlid(task!.id!)).toBe(true);
  expect(ulidTime(task!.id!)).toBe(at.getTime());
});

test('task: the id depends on connector, collection, commit and record, and on nothing else', () => {
  const idOf = (change: WatchChange, more: object = {}, own: Partial<ConnectorConfig> = {}) =>
    tasksOf({ ...message(change), ...more }, { ...config, ...own })[0]!.id;
  const id = idOf(inserted);
  expect(idOf(inserted, { leaderSeq: 99, resumeToken: 'x' }, { payload: 'before_after' })).toBe(id);
  const others = [
    idOf(inserted, {}, { name: 'other' }),
    idOf(inserted, { seq: 8 }),
    idOf(inserted, { epoch: 2 }),
    idOf({ ...inserted, collection: 'others' }),
    idOf({ ...inserted, record: { ...removed, id: '01JD3Z8Q4M7X2N5V9RTBKWCH6F' } as never }),
    idOf(updated),
  ];
  expect(new Set([id, ...others]).size).toBe(7);
});

test('task: payloads', () => {
  const json = 'application/json';
  expect(payloads([inserted, updated, expired])).toEqual([
    ['{"total":5}', json],
    ['{"total":6}', json],
    ['null', json],
  ]);
  expect(payloads([inserted, updated, expired], { payload: 'before_after' })).toEqual([
    ['{"before":null,"after":{"total":5}}', json],
    ['{"before":{"total":5},"after":{"total":6}}', json],
    ['{"before":{"total":6},"after":null}', json],
  ]);
  expect(payloads([expired], { payload: { op: '{{op}}', was: '{{before.total}}' } })).toEqual([
    ['{"op":"delete","was":6}', json],
  ]);
  expect(payloads([updated], { payload: 'Total {{after.total}}' })).toEqual([
    ['Total 6', 'text/plain; charset=utf-8'],
  ]);
  expect(payloads([updated], { payload: '{"n": {{after.total}}}' })).toEqual([['{"n": 6}', json]]);
});

test('task: only the chosen operations, and no update that leaves the filter', () => {
  expect(payloads([inserted, updated, expired], { on: ['delete'] })).toHaveLength(1);
  expect(payloads([{ ...updated, left: true }])).toHaveLength(0);
  expect(payloads([{ ...updated, entered: true }])).toHaveLength(1);
  expect(payloads([{ ...expired, left: true }])).toHaveLength(1);
});

test('task: asks for the document before the change only if the payload has it', () => {
  expect(needsBefore(config)).toBe(false);
  expect(needsBefore({ ...config, payload: 'before_after' })).toBe(true);
  expect(needsBefore({ ...config, payload: ['{{before.total}}'] })).toBe(true);
});
