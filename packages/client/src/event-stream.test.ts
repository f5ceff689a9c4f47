import { expect, test } from 'vitest';
import { EventParser } from './event-stream.js';

const stream =
  'retry: 2000\n\nid: 7\nevent: session.changed\ndata: {"a":1}\n\n: still here\n\n' +
  'id: 8\nevent: note.changed\ndata: one\ndata: two\n\n';

const events = [
  { id: '7', type: 'session.changed', data: '{"a":1}' },
  { id: '8', type: 'note.changed', data: 'one\ntwo' },
];

test('EventParser: returns events, skips comments and retry', () => {
  expect(new EventParser().push(stream)).toEqual(events);
});

test('EventParser: chunk boundaries do not matter', () => {
  for (let at = 0; at <= stream.length; at++) {
    const parser = new EventParser();
    expect([...parser.push(stream.slice(0, at)), ...parser.push(stream.slice(at))]).toEqual(events);
  }
});

test('EventParser: holds back an incomplete event', () => {
  expect(new EventParser().push('id: 1\nevent: x\ndata: y\n')).toEqual([]);
});
