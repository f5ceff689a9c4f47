import { expect, test } from 'vitest';
import { liveKindOf } from './live-kind.js';

test.each([
  ['ctl queue stats', 'queue', undefined, 'queues'],
  ['ctl queue watch', 'queues', undefined, 'queues'],
  ['ctl queue get', 'id', undefined, 'tasks'],
  ['ctl queue redrive', 'ids', undefined, 'dead-tasks'],
  ['ctl queue schedule pause', 'name', undefined, 'schedules'],
  ['ctl queue secret add', 'name', undefined, undefined],
  ['ctl queue create', 'queue', undefined, undefined],
  ['ctl queue cancel', 'queue', '--queue', 'queues'],
  ['ctl agent submit', 'name', '--queue', 'queues'],
  ['ctl agent spawn', 'id', '--backend', 'backends'],
  ['ctl agent spawn', 'agent', '--parent', 'agents'],
  ['ctl backend enable', 'id', undefined, 'backends'],
  ['ctl db find', 'collection', undefined, 'collections'],
  ['ctl db keys revoke', 'id', undefined, undefined],
  ['ctl queue token new', 'id', '--id', undefined],
])('%s %s %s: completes %4$s', (path, name, flag, kind) => {
  expect(liveKindOf(path, name, flag)).toBe(kind);
});
