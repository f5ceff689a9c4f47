import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { GrpcClient } from '../server/support/grpc.js';
import { RestClient } from '../server/support/rest.js';
import { kinOf, speak } from './support/peer.js';
import {
  expectSame,
  inState,
  reached,
  streaming,
  useNodes,
  type TestNode,
} from './support/nodes.js';

const nodes = useNodes();

function grpcOf({ url }: { url: string }): GrpcClient {
  const client = new GrpcClient(url.replace('grpc://', ''));
  nodes.onClose(() => client.close());
  return client;
}

async function inRole(node: TestNode, role: string): Promise<void> {
  await expect.poll(async () => (await node.status()).role, { timeout: 60_000 }).toBe(role);
}

interface TailLine {
  seq: number;
  changes: { op: string; collection: string; record?: { key: string; data: object } }[];
}

function tailOf(node: TestNode, file: string) {
  const lines = readFileSync(join(node.data, file), 'utf8').trimEnd().split('\n');
  const [header, ...commits] = lines.map((line) => JSON.parse(line) as unknown);
  return { header: header as Record<string, unknown>, commits: commits as TailLine[] };
}

const readOnly = (node: TestNode) =>
  new RestClient(node.http).refusal('POST', '/v1/docs/records', { data: {} });

test('promotion: under load loses no acknowledged write and fences the old leader', async () => {
  const old = await nodes.start();
  const docs = old.client.collection('docs');
  await docs.insert({ first: true });
  const next = await nodes.follow(old.url);
  const answered: string[] = [];
  const reasons = new Set<string>();
  const writers = Array.from({ length: 8 }, async (_, w) => {
    for (let n = 0; ; n++) {
      try {
        answered.push((await docs.insert({ w, n })).id);
      } catch (error) {
        reasons.add((error as { code: string }).code);
        return;
      }
    }
  });
  await expect.poll(() => answered.length, { timeout: 60_000 }).toBeGreaterThan(100);
  // Under load a follower lags by a few commits; the promotion waits for them.
  const promoted = await next.client.promote({ maxLag: 1_000_000 });
  expect(promoted).toMatchObject({ role: 'leader', epoch: 2, lag: 0 });
  await Promise.all(writers);
  expect([...reasons]).toEqual(['FENCED']);
  expect(await old.status()).toMatchObject({
    role: 'fenced',
    state: 'fenced',
    epoch: 2,
    leaderAddress: next.url,
  });
  const there = next.client.collection('docs');
  const ids = new Set<string>();
  for await (const { id } of there.stream()) ids.add(id);
  expect(answered.filter((id) => !ids.has(id))).toEqual([]);
  await there.insert({ after: true });
  expect((await next.status()).seq).toBe(promoted.seq + 1);
  expect((await next.server.database.verify()).problems).toEqual([]);

  // The old leader has no extra commits, so it continues as a follower.
  await old.stop();
  const back = await nodes.follow(next.url, {}, old.data);
  await expectSame(next, back);
  expect((await back.status()).savedTails).toEqual([]);
});

test('promotion: a lagging follower needs force and reports the lost commits', async () => {
  const old = await nodes.start();
  const docs = old.client.collection('docs');
  const proxy = await nodes.proxy(old.url);
  await docs.upsert('a', { n: 1 });
  const next = await nodes.follow(proxy.url);
  proxy.goDown();
  await inState(next, 'disconnected');
  const pad = 'x'.repeat(5_000);
  for (let n = 0; n < 40; n++) await docs.insert({ n, pad });
  proxy.heal();
  proxy.cutAfter(60_000, true);
  await expect.poll(async () => (await next.status()).seq, { timeout: 60_000 }).toBeGreaterThan(1);
  await inState(next, 'disconnected');
  const { lag, seq, leaderSeq, lagMs } = await next.status();
  expect([seq + lag, leaderSeq]).toEqual([41, 41]);
  expect(lag).toBeGreaterThan(5);
  expect(lagMs).toBeGreaterThan(0);
  const refused = await grpcOf(next).refusal('Promote', { max_lag: lag - 1 });
  expect(refused).toMatchObject({
    code: 'FAILED_PRECONDITION',
    reason: 'REPLICA_LAG',
    metadata: { lag: String(lag) },
  });
  expect((await next.status()).role).toBe('follower');
  const promoted = await next.client.promote({ force: true });
  expect(promoted).toEqual({ role: 'leader', epoch: 2, seq, lag });
  await next.client.collection('docs').insert({ after: true });

  // The saved file has exactly the commits that were reported as lost.
  await old.stop();
  const back = await nodes.follow(next.url, {}, old.data);
  const [tail] = (await back.status()).savedTails;
  expect(tail).toMatchObject({ firstSeq: seq + 1, lastSeq: 41, epoch: 1 });
  expect(tailOf(back, tail!.file).commits).toHaveLength(lag);
  await expectSame(next, back);
});

test('fencing: a partitioned old leader is fenced on contact and follows with its tail saved', async () => {
  const old = await nodes.start();
  const docs = old.client.collection('docs');
  const proxy = await nodes.proxy(old.url);
  await docs.upsert('a', { n: 1 });
  await docs.upsert('gone', { n: 1 });
  const next = await nodes.follow(proxy.url);
  proxy.goDown();
  await inState(next, 'disconnected');
  expect(await next.client.promote()).toMatchObject({ role: 'leader', epoch: 2, seq: 2, lag: 0 });
  const there = next.client.collection('docs');
  for (let n = 0; n < 5; n++) await there.insertWithKey(`new${n}`, { n });
  // The old leader does not know of the promotion, so it accepts these writes.
  await docs.upsert('a', { n: 2 });
  await docs.deleteByKey('gone');
  await docs.insertWithKey('lost', { n: 3 }, { ttlMs: 3_600_000 });
  expect((await old.status()).role).toBe('leader');

  proxy.heal();
  await inRole(old, 'fenced');
  expect(await readOnly(old)).toMatchObject({
    status: 400,
    reason: 'FENCED',
    metadata: { epoch: '2', leader: next.url },
  });
  expect((await docs.findByKey('lost'))?.data).toEqual({ n: 3 });
  expect(await grpcOf(old).refusal('Promote')).toMatchObject({ reason: 'FENCED' });
  await old.stop();

  const restarted = await nodes.start({}, old.data);
  expect(await restarted.status()).toMatchObject({ role: 'fenced', epoch: 2 });
  expect(await readOnly(restarted)).toMatchObject({ reason: 'FENCED' });
  await restarted.stop();

  const back = await nodes.follow(next.url, {}, old.data);
  await expectSame(next, back);
  const status = await back.status();
  expect(status).toMatchObject({ role: 'follower', state: 'streaming', epoch: 2, seq: 7 });
  const [tail] = status.savedTails;
  expect(status.savedTails).toHaveLength(1);
  expect(tail).toMatchObject({ firstSeq: 3, lastSeq: 5, epoch: 1 });
  expect(Date.now() - tail!.savedAt.getTime()).toBeLessThan(60_000);
  const { header, commits } = tailOf(back, tail!.file);
  expect(header).toMatchObject({
    format: 'millrace.db.tail',
    first_seq: 3,
    last_seq: 5,
    leader: next.url,
    lineage_id: status.lineageId,
  });
  expect(commits.map(({ seq, changes }) => [seq, changes[0]!.op])).toEqual([
    [3, 'update'],
    [4, 'delete'],
    [5, 'insert'],
  ]);
  expect(commits[2]!.changes[0]!.record).toMatchObject({ key: 'lost', data: { n: 3 } });
  expect(statSync(join(back.data, tail!.file)).mode & 0o777).toBe(0o600);
  expect((await back.client.collection('docs').findByKey('a'))?.data).toEqual({ n: 1 });

  // The tail is saved only once.
  await back.stop();
  const again = await nodes.follow(next.url, {}, old.data);
  expect((await again.status()).savedTails).toEqual([tail]);
});

test('failover: a watch resumes at the new leader', async () => {
  const old = await nodes.start();
  const docs = old.client.collection('docs');
  await docs.insertWithKey('before', { n: 0 });
  const next = await nodes.follow(old.url);
  const watch = docs.watch({ startSeq: 2 });
  await docs.insertWithKey('seen', { n: 1 });
  const { value: seen } = await watch.next();
  await docs.insertWithKey('unseen', { n: 2 });
  await watch.return?.();
  await next.client.promote({ maxLag: 10 });
  const there = next.client.collection('docs');
  await there.insertWithKey('after', { n: 3 });
  const goesOn = there.watch({ resumeToken: seen!.resumeToken });
  for (const key of ['unseen', 'after']) {
    expect((await goesOn.next()).value).toMatchObject({ changes: [{ record: { key } }] });
  }
  await goesOn.return?.();
});

test('failover: a watch past a rolled-back commit is refused', async () => {
  const old = await nodes.start();
  const docs = old.client.collection('docs');
  await docs.insert({ n: 1 });
  const next = await nodes.follow(old.url);
  await next.stop();
  await docs.insert({ n: 2 });
  const watch = docs.watch({ startSeq: 2 });
  const { value } = await watch.next();
  await watch.return?.();
  await old.stop();
  const leader = await nodes.start({ follow: old.url }, next.data);
  await leader.client.promote({ force: true });
  await leader.client.collection('docs').insert({ other: 2 });
  await leader.client.collection('docs').insert({ other: 3 });
  const back = await nodes.follow(leader.url, {}, old.data);
  const resumed = back.client.collection('docs').watch({ resumeToken: value!.resumeToken });
  await expect(resumed.next()).rejects.toMatchObject({ code: 'BAD_RESUME_TOKEN' });
});

test('restart: a promoted node keeps leading with the same settings', async () => {
  const old = await nodes.start();
  await old.client.collection('docs').insert({ n: 1 });
  const next = await nodes.follow(old.url);
  await old.stop();
  await inState(next, 'disconnected');
  await next.client.promote();
  await next.stop();
  const again = await nodes.start({ follow: old.url }, next.data);
  expect(await again.status()).toMatchObject({ role: 'leader', epoch: 2 });
  await again.client.collection('docs').insert({ n: 2 });
  // On a leader a promotion changes nothing.
  expect(await again.client.promote()).toEqual({ role: 'leader', epoch: 2, seq: 2, lag: 0 });
  await again.stop();

  // A different address in follow is obeyed.
  const third = await nodes.start();
  await third.client.collection('docs').insert({ n: 1 });
  const moved = await nodes.start({ follow: third.url }, next.data);
  expect((await moved.status()).role).toBe('follower');
});

test('restart: a follower without follow does not become leader', async () => {
  const leader = await nodes.start();
  await leader.client.collection('docs').insert({ n: 1 });
  const follower = await nodes.follow(leader.url);
  await follower.stop();
  const alone = await nodes.start({}, follower.data);
  expect(await alone.status()).toMatchObject({ role: 'fenced', leaderAddress: leader.url });
  expect(await readOnly(alone)).toMatchObject({ reason: 'FENCED' });
  expect(await alone.client.collection('docs').count()).toBe(1);
  expect(await alone.client.promote({ force: true })).toMatchObject({ role: 'leader', epoch: 2 });
  await alone.client.collection('docs').insert({ n: 2 });
});

test('promotion: the old leader is notified even after a restart of the new one', async () => {
  const old = await nodes.start();
  await old.client.collection('docs').insert({ n: 1 });
  const proxy = await nodes.proxy(old.url);
  const next = await nodes.follow(proxy.url);
  proxy.goDown();
  await inState(next, 'disconnected');
  await next.client.promote();
  await next.stop();
  expect((await old.status()).role).toBe('leader');
  proxy.heal();
  const again = await nodes.start({}, next.data);
  await inRole(old, 'fenced');
  expect((await again.status()).role).toBe('leader');
});

test('fencing: a follower of the new leader fences the old one', async () => {
  const old = await nodes.start();
  await old.client.collection('docs').insert({ n: 1 });
  const proxy = await nodes.proxy(old.url);
  const [next, other] = [await nodes.follow(proxy.url), await nodes.follow(proxy.url)];
  proxy.goDown();
  await inState(next, 'disconnected');
  await next.client.promote();
  await other.stop();
  const moved = await nodes.follow(next.url, {}, other.data);
  await next.client.collection('docs').insert({ n: 2 });
  await expectSame(next, moved);
  await moved.stop();
  await next.stop();
  expect((await old.status()).role).toBe('leader');
  const astray = await nodes.start({ follow: old.url }, other.data);
  await inRole(old, 'fenced');
  await inState(astray, 'disconnected');
  expect(await astray.status()).toMatchObject({ role: 'follower', epoch: 2, seq: 2 });
});

test('failover: roles change back and forth', async () => {
  const a = await nodes.start();
  await a.client.collection('docs').insert({ n: 1 });
  const b = await nodes.follow(a.url);
  await b.client.promote();
  await inRole(a, 'fenced');
  await a.stop();
  const port = a.url.split(':').at(-1)!;
  const back = await nodes.follow(b.url, { grpc: `127.0.0.1:${port}` }, a.data);
  await b.client.collection('docs').insert({ n: 2 });
  await expectSame(b, back);
  expect(await back.client.promote({ maxLag: 1 })).toMatchObject({ role: 'leader', epoch: 3 });
  // b has "follow" in its settings, so it becomes a follower automatically.
  await inRole(b, 'follower');
  await back.client.collection('docs').insert({ n: 3 });
  await streaming(b);
  await expectSame(back, b);
});

test('failover: a tail that cannot be compared is saved completely', async () => {
  const old = await nodes.start();
  const docs = old.client.collection('docs');
  for (let n = 0; n < 3; n++) await docs.insert({ n });
  const next = await nodes.follow(old.url);
  await next.stop();
  await docs.insertWithKey('lost', { n: 3 });
  await old.stop();
  const leader = await nodes.start({ follow: old.url }, next.data);
  await leader.client.promote({ force: true });
  for (let n = 0; n < 20; n++) await leader.client.collection('docs').insert({ n });
  await leader.client.compact({ trimBeforeSeq: 23 });
  const back = await nodes.follow(leader.url, {}, old.data);
  await expectSame(leader, back);
  const [tail] = (await back.status()).savedTails;
  expect(tail).toMatchObject({ firstSeq: 1, lastSeq: 4 });
  const keys = tailOf(back, tail!.file).commits.map(({ changes }) => changes[0]!.record!.key);
  expect(keys).toEqual(['', '', '', 'lost']);
  expect(readdirSync(back.data).filter((name) => name.startsWith('store-'))).toHaveLength(2);
});

test('peers: another database or a wrong start is refused', async () => {
  const leader = await nodes.start();
  await leader.client.collection('docs').insert({ n: 1 });
  const kin = await kinOf(leader);
  const calls = ['Watch', 'Backup', 'ReplicationStatus'] as const;
  for (const call of calls) {
    expect(await speak(leader, call, kin)).toBeUndefined();
    // A higher epoch of another database is ignored.
    const stranger = { ...kin, epoch: 9n, lineageId: 'ab'.repeat(16) };
    expect(await speak(leader, call, stranger)).toEqual({
      code: 'LINEAGE_MISMATCH',
      metadata: { lineage_id: kin.lineageId },
    });
    expect(await speak(leader, call, { ...kin, chainHash: 1n })).toEqual({
      code: 'DIVERGED',
      metadata: { diverged_after_seq: '0' },
    });
    expect(await speak(leader, call, { ...kin, ackedSeq: 7n })).toEqual({
      code: 'DIVERGED',
      metadata: { diverged_after_seq: '1' },
    });
  }
  expect(await speak(leader, 'Watch', kin, 1n)).toMatchObject({ code: 'BAD_REQUEST' });
  for (const nonsense of [{ nodeId: '' }, { epoch: 2n ** 60n }, { nodeId: 'x'.repeat(300) }]) {
    const refused = await speak(leader, 'ReplicationStatus', { ...kin, ...nonsense });
    expect(refused).toMatchObject({ code: 'BAD_REQUEST' });
  }
  const follower = await nodes.follow(leader.url);
  for (const call of calls) {
    expect(await speak(follower, call, kin)).toEqual({
      code: 'NOT_LEADER',
      metadata: { leader: leader.url },
    });
  }
  // The leader is unchanged.
  expect((await leader.status()).role).toBe('leader');
  await leader.client.collection('docs').insert({ n: 2 });
  await reached(follower, 2);

  for (const call of calls) {
    expect(await speak(leader, call, { ...kin, epoch: 5n })).toEqual({
      code: 'FENCED',
      metadata: { epoch: '5', leader: '' },
    });
  }
  expect(await leader.status()).toMatchObject({ role: 'fenced', epoch: 5 });
});
