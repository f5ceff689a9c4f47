import { EventSource } from 'eventsource';
import { expect, test } from 'vitest';
import { freshName, plainRecord, recordOf, useServer } from './support/both.js';
import { toFilter, toStruct, type Message } from './support/proto.js';
import { WatchReader } from './support/watching.js';

const both = useServer();

test('watch: gRPC delivers inserts, updates and deletes', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const watch = new WatchReader(grpc.stream('Watch', { collection }));
  await watch.isOpen;
  const keys = `/v1/${collection}/keys`;
  const made = recordOf(await rest.ok('POST', keys, { key: 'k', data: { n: 1 } }));
  const changed = recordOf(await rest.ok('PATCH', `${keys}/k`, { data: { n: 2 } }));
  const { seq } = await rest.ok('DELETE', `${keys}/k`);
  const messages = [await watch.next(), await watch.next(), await watch.next()];
  expect(messages.map((message) => message['kind'])).toEqual(Array(3).fill('WATCH_KIND_CHANGES'));
  const changes = messages.flatMap((message) => message['changes'] as Message[]);
  expect(changes.map(({ op }) => op)).toEqual([
    'CHANGE_OP_INSERT',
    'CHANGE_OP_UPDATE',
    'CHANGE_OP_DELETE',
  ]);
  expect(plainRecord(recordOf(changes[0]!))).toEqual(made);
  expect(plainRecord(recordOf(changes[1]!))).toEqual(changed);
  expect(plainRecord(recordOf(changes[2]!))).toEqual({ id: made['id'], key: 'k', rev: 2, seq });
  expect(messages[2]).toMatchObject({ seq, leader_seq: seq, epoch: 1 });
  expect(changes.map(({ before }) => before)).toEqual([null, null, null]);
  watch.close();
});

test('watch: resumes after its token without gap or duplicate', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const insert = (n: number) => rest.ok('POST', `/v1/${collection}/records`, { data: { n } });
  const first = new WatchReader(grpc.stream('Watch', { collection }));
  await first.isOpen;
  await insert(1);
  await insert(2);
  const token = (await first.next())['resume_token'];
  first.close();
  await insert(3);
  const second = new WatchReader(grpc.stream('Watch', { collection, resume_token: token }));
  expect([await second.number(), await second.number()]).toEqual([2, 3]);
  second.close();
});

test('watch: include_initial delivers existing records, then changes', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  for (const n of [1, 2, 3]) await rest.ok('POST', `/v1/${collection}/records`, { data: { n } });
  const filter = { field: 'n', op: 'gte', value: 2 };
  const watch = new WatchReader(
    grpc.stream('Watch', { collection, include_initial: true, filter: toFilter(filter) }),
  );
  const initial = await watch.next();
  expect(initial['kind']).toBe('WATCH_KIND_INITIAL');
  expect(initial['changes']).toHaveLength(2);
  expect(await watch.next()).toMatchObject({ kind: 'WATCH_KIND_INITIAL_END', changes: [] });
  await rest.ok('POST', `/v1/${collection}/records`, { data: { n: 1 } });
  await rest.ok('POST', `/v1/${collection}/records`, { data: { n: 9 } });
  expect(await watch.number()).toBe(9);
  watch.close();
});

test('watch: a filter reports entered and left, with the previous record', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const filter = toFilter({ field: 'on', op: 'eq', value: true });
  const request = { collection, filter, include_before: true, fields: ['on'] };
  const watch = new WatchReader(grpc.stream('Watch', request));
  await watch.isOpen;
  const put = (data: object) => rest.ok('POST', `/v1/${collection}/keys/k:upsert`, { data });
  await put({ on: false, x: 1 });
  await put({ on: true, x: 2 });
  await put({ on: true, x: 3 });
  await put({ on: false, x: 4 });
  const seen: unknown[] = [];
  for (let i = 0; i < 3; i++) {
    const [change] = (await watch.next())['changes'] as Message[];
    const { op, entered, left, record, before } = change!;
    expect(plainRecord(record as Message)['data']).not.toHaveProperty('x');
    seen.push([op, entered, left, plainRecord(before as Message)['data']]);
  }
  expect(seen).toEqual([
    ['CHANGE_OP_UPDATE', true, false, { on: false }],
    ['CHANGE_OP_UPDATE', false, false, { on: true }],
    ['CHANGE_OP_UPDATE', false, true, { on: true }],
  ]);
  watch.close();
});

test('watch: an idle watch gets bookmarks at its heartbeat interval', async () => {
  const watch = new WatchReader(
    both.grpc.stream('Watch', { collection: freshName(), heartbeat: { seconds: 0, nanos: 5e7 } }),
  );
  for (let i = 0; i < 3; i++) {
    expect(await watch.next()).toMatchObject({ kind: 'WATCH_KIND_BOOKMARK', changes: [] });
  }
  watch.close();
});

test('watch: one commit is one message, also over several collections', async () => {
  const [one, two] = [freshName(), freshName()];
  const { rest, grpc } = both;
  const watch = new WatchReader(grpc.stream('Watch', {}));
  await watch.isOpen;
  const { tx_id: txId } = await rest.ok('POST', '/v1/tx:begin');
  for (const name of [one, two, one]) {
    await rest.ok('POST', `/v1/${name}/records`, { data: {}, tx_id: txId });
  }
  await rest.ok('POST', `/v1/tx/${String(txId)}:commit`);
  const changes = (await watch.next())['changes'] as Message[];
  expect(changes.map(({ collection }) => collection)).toEqual([one, two, one]);
  watch.close();
});

test('watch: start_seq starts at that commit, a trimmed one is OUT_OF_RANGE', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const made = recordOf(await rest.ok('POST', `/v1/${collection}/records`, { data: { n: 1 } }));
  const watch = new WatchReader(grpc.stream('Watch', { collection, start_seq: made['seq'] }));
  expect(await watch.number()).toBe(1);
  watch.close();
  await rest.ok('POST', '/v1/admin:compact', { trim_before_seq: Number(made['seq']) + 1 });
  const refused = await grpc.refusal('Watch', { collection, start_seq: 1 });
  expect(refused).toMatchObject({ code: 'OUT_OF_RANGE', reason: 'WATCH_COMPACTED' });
  expect(Number(refused.metadata['oldest_seq'])).toBe(Number(made['seq']) + 1);
  const overRest = await rest.refusal('GET', `/v1/${collection}/records:watch?start_seq=1`);
  expect(overRest).toMatchObject({ status: 400, reason: 'WATCH_COMPACTED' });
});

test('watch: REST delivers NDJSON lines', async () => {
  const collection = freshName();
  const { rest } = both;
  await rest.ok('POST', `/v1/${collection}/keys`, { key: 'a', data: { n: 1 } });
  const watch = await rest.open('POST', `/v1/${collection}/records:watch`, {
    include_initial: true,
  });
  expect(watch.response.headers.get('content-type')).toBe('application/x-ndjson');
  expect(await watch.line()).toMatchObject({
    kind: 'WATCH_KIND_INITIAL',
    resume_token: '',
    changes: [{ op: 'CHANGE_OP_INSERT', collection, record: { key: 'a', data: { n: 1 } } }],
  });
  expect(await watch.line()).toMatchObject({ kind: 'WATCH_KIND_INITIAL_END' });
  await rest.ok('DELETE', `/v1/${collection}/keys/a`);
  const deleted = await watch.line();
  expect(deleted).toMatchObject({
    kind: 'WATCH_KIND_CHANGES',
    changes: [
      { op: 'CHANGE_OP_DELETE', record: { key: 'a', rev: 1 }, entered: false, left: false },
    ],
  });
  expect(deleted).not.toHaveProperty('chain_hash');
  expect((deleted['changes'] as Message[])[0]!['record']).not.toHaveProperty('data');
  watch.close();
});

test('watch: GET accepts its filter as JSON in the query', async () => {
  const collection = freshName();
  const { rest } = both;
  const query = new URLSearchParams({
    filter: JSON.stringify({ field: 'n', op: 'gt', value: 1 }),
    include_initial: 'true',
    heartbeat: '0.050s',
  });
  const watch = await rest.open('GET', `/v1/${collection}/records:watch?${query}`);
  expect(await watch.line()).toMatchObject({ kind: 'WATCH_KIND_INITIAL_END' });
  expect(await watch.line()).toMatchObject({ kind: 'WATCH_KIND_BOOKMARK' });
  watch.close();
});

test('watch: REST has a path for the whole database', async () => {
  const collection = freshName();
  const { rest } = both;
  const watch = await rest.open('POST', '/v1/records:watch', {});
  await rest.ok('POST', `/v1/${collection}/records`, { data: {} });
  expect((await watch.line())['changes']).toMatchObject([{ collection }]);
  watch.close();
});

test('watch: an EventSource receives events and resumes', async () => {
  const collection = freshName();
  const { rest, server } = both;
  const url = `${server.http}/v1/${collection}/records:watch?include_initial=true`;
  const events: Message[] = [];
  const ids: string[] = [];
  const source = new EventSource(url);
  source.addEventListener('message', (event) => {
    events.push(JSON.parse(String(event.data)) as Message);
    ids.push(event.lastEventId);
  });
  await expect.poll(() => events.length).toBe(1);
  expect(events[0]!['kind']).toBe('WATCH_KIND_INITIAL_END');
  await rest.ok('POST', `/v1/${collection}/records`, { data: { n: 1 } });
  await expect.poll(() => events.length).toBe(2);
  expect(ids[1]).toBe(events[1]!['resume_token']);
  source.close();

  await rest.ok('POST', `/v1/${collection}/records`, { data: { n: 2 } });
  const headers = { accept: 'text/event-stream', 'last-event-id': ids[1]! };
  const path = `/v1/${collection}/records:watch?include_initial=true&start_seq=1`;
  const again = await rest.open('GET', path, undefined, headers);
  expect(again.response.headers.get('content-type')).toBe('text/event-stream');
  expect(await again.next('\n\n')).toBe(': open');
  const [id, data] = (await again.next('\n\n'))!.split('\n');
  expect(id).toMatch(/^id: [\w-]+$/);
  expect(JSON.parse(data!.slice('data: '.length))).toMatchObject({
    changes: [{ record: { data: { n: 2 } } }],
  });
  again.close();
});

test('watch: encoding JSON delivers JSON bytes', async () => {
  const collection = freshName();
  const watch = new WatchReader(both.grpc.stream('Watch', { collection, encoding: 2 }));
  await watch.isOpen;
  await both.grpc.call('Insert', { collection, data: toStruct({ n: 1 }) });
  const [change] = (await watch.next())['changes'] as Message[];
  expect(String(recordOf(change!)['data_json'])).toBe('{"n":1}');
  watch.close();
});

test('watch: a commit of many megabytes is one message', async () => {
  const collection = freshName();
  const { grpc, rest } = both;
  const watch = new WatchReader(grpc.stream('Watch', { collection, encoding: 2 }));
  await watch.isOpen;
  const { tx_id: txId } = await grpc.call('BeginTx');
  const data = toStruct({ text: 'z'.repeat(1_500_000) });
  for (let i = 0; i < 5; i++) await grpc.call('Insert', { collection, data, tx_id: txId });
  await rest.ok('POST', `/v1/tx/${String(txId)}:commit`, {});
  expect((await watch.next())['changes']).toHaveLength(5);
  watch.close();
});
