import { expect, test } from 'vitest';
import { RestClient } from '../server/support/rest.js';
import { expectSame, inState, useNodes, type TestNode } from './support/nodes.js';

const nodes = useNodes();
const patience = { timeout: 60_000, interval: 20 };

/** A leader behind a proxy, and two followers that have caught up. */
async function leaderOfTwo() {
  const old = await nodes.start();
  await old.client.collection('docs').insert({ n: 1 });
  const proxy = await nodes.proxy(old.url);
  const pair = [await nodes.follow(proxy.url), await nodes.follow(proxy.url)] as const;
  return { old, proxy, pair };
}

async function rolesOf(all: readonly TestNode[]): Promise<string[]> {
  return Promise.all(all.map(async (node) => (await node.status()).role));
}

test('promotion: of two concurrent promotions one wins and the other is refused', async () => {
  const { old, pair } = await leaderOfTwo();
  const promotions = await Promise.allSettled(pair.map((node) => node.client.promote()));
  const won = promotions.findIndex(({ status }) => status === 'fulfilled');
  const [winner, loser] = [pair[won]!, pair[1 - won]!];
  expect(promotions[1 - won]).toMatchObject({
    status: 'rejected',
    reason: {
      code: 'FENCED',
      extra: { members: { metadata: { epoch: '2', leader: winner.url } } },
    },
  });
  expect(await rolesOf([old, winner, loser])).toEqual(['fenced', 'leader', 'follower']);
  expect(await old.status()).toMatchObject({ epoch: 2, leaderAddress: winner.url });
});

test('promotion: a follower that knows another leader needs force and a later epoch', async () => {
  const { old, pair } = await leaderOfTwo();
  const [first, second] = pair;
  expect(await first.client.promote()).toMatchObject({ epoch: 2 });
  await first.client.collection('docs').insert({ n: 2 });
  await inState(second, 'disconnected');
  await expect.poll(async () => (await second.status()).epoch, patience).toBe(2);
  const refused = await new RestClient(second.http).refusal('POST', '/v1/admin:promote', {});
  expect(refused).toMatchObject({ status: 400, reason: 'FENCED', metadata: { epoch: '2' } });
  expect((await second.status()).role).toBe('follower');

  expect(await second.client.promote({ force: true })).toMatchObject({ role: 'leader', epoch: 3 });
  await expect.poll(async () => (await old.status()).leaderAddress, patience).toBe(second.url);
  // The first leader is fenced by the first contact with the later epoch.
  await old.stop();
  await nodes.start({ follow: first.url }, old.data);
  await expect.poll(async () => (await first.status()).role, patience).not.toBe('leader');
});

test('promotion: of two isolated leaders the second steps down and saves its commits', async () => {
  const { old, proxy, pair } = await leaderOfTwo();
  proxy.goDown();
  for (const node of pair) await inState(node, 'disconnected');
  for (const [index, node] of pair.entries()) {
    expect(await node.client.promote()).toMatchObject({ role: 'leader', epoch: 2, lag: 0 });
    await node.client.collection('docs').insertWithKey(`of ${index}`, { index });
  }
  proxy.heal();
  await expect
    .poll(async () => (await rolesOf(pair)).toSorted(), patience)
    .toEqual(['fenced', 'leader']);
  expect((await old.status()).role).toBe('fenced');
  const lost = (await rolesOf(pair)).indexOf('fenced');
  const [winner, loser] = [pair[1 - lost]!, pair[lost]!];
  expect(await loser.status()).toMatchObject({ epoch: 2, leaderAddress: winner.url });
  const write = await new RestClient(loser.http).refusal('POST', '/v1/docs/records', { data: {} });
  expect(write).toMatchObject({ reason: 'FENCED', metadata: { epoch: '2', leader: winner.url } });

  await loser.stop();
  const back = await nodes.follow(winner.url, {}, loser.data);
  expect((await back.status()).savedTails).toMatchObject([{ firstSeq: 2, lastSeq: 2 }]);
  await expectSame(winner, back);
});
