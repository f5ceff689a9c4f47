import { Database } from '@millrace/contract/db';
import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { expect, test } from 'vitest';
import { type ServerAddress, parseAddresses } from './address.js';
import { CallRefusal } from './failures.js';
import { Router } from './router.js';
import type { Transport } from './transport.js';

/** A router of nodes that all say that `leader` leads; returns what it dialled. */
async function dialled(urls: string, leader: string): Promise<string[]> {
  const opened: string[] = [];
  const refusal = new CallRefusal(
    'READ_ONLY_REPLICA',
    'This node is a follower.',
    { members: { metadata: { leader } } },
    'FAILED_PRECONDITION',
    true,
  );
  const open = ({ url }: ServerAddress) => {
    opened.push(url);
    return {
      url,
      unary: () => Promise.reject(refusal),
      close: () => undefined,
    } as never as Transport;
  };
  const router = new Router({
    addresses: parseAddresses(urls),
    open,
    clock: systemClock,
    random: systemRandom,
    prefer: 'leader',
  });
  const insert = () => router.unary(Database.method.insert, { collection: 'c' }, {});
  await expect(insert()).rejects.toThrow(/does not lead/);
  await expect(insert()).rejects.toThrow(/does not lead/);
  router.close();
  return opened;
}

test.each(['grpc://evil:1', 'grpc://a:1', 'unix:/tmp/evil.sock', 'http://evil:1', 'evil'])(
  'router: with TLS a leader at %s is not dialled',
  async (leader) => {
    const own = ['grpcs://a:1', 'grpcs://b:1'];
    expect(await dialled(own.join(','), leader)).toEqual(own);
  },
);

test('router: without TLS a leader with TLS is not dialled', async () => {
  const own = ['grpc://a:1', 'grpc://b:1'];
  expect(await dialled(own.join(','), 'grpcs://c:1')).toEqual(own);
});

test('router: a leader with the same scheme is followed', async () => {
  const opened = await dialled('grpcs://a:1,grpcs://b:1', 'grpcs://c:1');
  expect(opened).toEqual(['grpcs://a:1', 'grpcs://b:1', 'grpcs://c:1']);
});
