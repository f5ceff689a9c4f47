import { expect, test } from 'vitest';
import { streaming, useNodes, type TestNode } from './support/nodes.js';

const nodes = useNodes();

const writesOf = ({ client }: TestNode) => {
  const docs = client.collection<{ n: number }>('docs');
  return {
    insert: () => docs.insert({ n: 1 }, { requestId: 'insert' }),
    update: () => docs.mergeByKey('a', { n: 2 }, { requestId: 'update' }),
    ifRev: () => docs.updateIfRev({ key: 'b' }, 1, { n: 3 }, { requestId: 'if rev' }),
    remove: () => docs.deleteByKey('c', { requestId: 'delete' }),
    bulk: () => docs.bulkWrite([{ insert: { data: { n: 4 } } }], { requestId: 'bulk' }),
    many: () => docs.updateMany({ n: 4 }, { n: 5 }, { requestId: 'many' }),
  };
};

async function answersOf(node: TestNode) {
  const answers: Record<string, unknown> = {};
  for (const [name, write] of Object.entries(writesOf(node))) answers[name] = await write();
  return answers;
}

test('request ids: a new leader answers repeated writes as the old one did', async () => {
  const old = await nodes.start({ 'min-acks': '1' });
  const next = await nodes.follow(old.url);
  await streaming(next);
  const docs = old.client.collection('docs');
  for (const key of ['a', 'b', 'c']) await docs.insertWithKey(key, { n: 0 });
  const answers = await answersOf(old);
  const transaction = await old.client.begin();
  await transaction.collection('docs').insert({ n: 6 });
  const committed = await transaction.commit();
  const { seq } = await old.status();
  await old.stop();
  await next.client.promote({ force: true });
  expect(await answersOf(next)).toEqual(answers);
  expect((await next.status()).seq).toBe(seq);
  expect(await next.server.database.transactions.commit(transaction.id)).toEqual(committed);
  expect(await next.client.collection('docs').count()).toBe(5);
});

test('request ids: only followers receive the results of requests', async () => {
  const node = await nodes.start();
  const watch = node.server.database.watches.open({ startSeq: 1 });
  await node.client.collection('docs').insert({ n: 1 }, { requestId: 'a' });
  const { value } = await watch.next();
  expect(value).not.toHaveProperty('results');
  await watch.return();
});
