import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { useNodes, type TestNode } from '../replication/support/nodes.js';
import { inState, leaderOf } from './support/cluster.js';
import { hasEtcd, startEtcd, type EtcdMember } from './support/etcd.js';

type Flags = Readonly<Record<string, string>>;
type RunningEtcd = Awaited<ReturnType<typeof startEtcd>>;

const file = (name: string) =>
  fileURLToPath(new URL(`../server/certificates/${name}`, import.meta.url));
const base64 = (text: string) => Buffer.from(text).toString('base64');
const server = { ca: file('ca.pem'), cert: file('server.pem'), key: file('server.key') };

/** Turns authentication on, with a user who may only use the prefix of the cluster `secure`. */
async function addUsers(member: EtcdMember): Promise<void> {
  const range = { key: base64('/millrace/db/secure/'), range_end: base64('/millrace/db/secure0') };
  const calls: [string, object][] = [
    ['user/add', { name: 'root', password: 'root' }],
    ['user/grant', { user: 'root', role: 'root' }],
    ['role/add', { name: 'nodes' }],
    ['role/grant', { name: 'nodes', perm: { permType: 'READWRITE', ...range } }],
    ['user/add', { name: 'node', password: 'p:w' }],
    ['user/grant', { user: 'node', role: 'nodes' }],
    ['enable', {}],
  ];
  for (const [path, body] of calls) {
    expect(await member.post(`/v3/auth/${path}`, body)).toMatchObject({ status: 200 });
  }
}

describe.skipIf(!hasEtcd)('etcd with TLS and users (needs the program etcd)', () => {
  const nodes = useNodes();
  let withUsers: RunningEtcd;
  let withCertificates: RunningEtcd;
  const member = () => withUsers.members[0]!;

  beforeAll(async () => {
    withUsers = await startEtcd(1, server);
    await addUsers(member());
    const client = { cert: file('caller.pem'), key: file('caller.key') };
    withCertificates = await startEtcd(1, { ...server, client });
  });
  afterAll(() => Promise.all([withUsers.stop(), withCertificates.stop()]));

  const flagsOf = (etcd: RunningEtcd, more: Flags): Flags => ({
    cluster: `etcds://127.0.0.1:${etcd.members[0]!.port}/secure`,
    'cluster-ttl': '3s',
    'cluster-ca': file('ca.pem'),
    'min-acks': '1',
    ...more,
  });

  const userFile = (content: string): string => {
    const path = join(nodes.newDirectory(), 'user');
    writeFileSync(path, `${content}\n`, { mode: 0o600 });
    return path;
  };

  const startTwo = async (flags: Flags) => {
    const all = [await nodes.start(flags), await nodes.start(flags)];
    const leader = await leaderOf(all);
    const other = all.find((node) => node !== leader)!;
    await inState(other, 'streaming');
    await leader.client.collection('docs').insert({ n: 1 });
    return { leader, other };
  };

  const failOver = async (leader: TestNode, other: TestNode) => {
    const count = await leader.client.collection('docs').count();
    await leader.stop();
    await inState(other, 'leading');
    expect(await other.client.collection('docs').count()).toBe(count);
  };

  test('cluster: fails over with client certificates', async () => {
    const caller = { 'cluster-cert': file('caller.pem'), 'cluster-key': file('caller.key') };
    const { leader, other } = await startTwo(flagsOf(withCertificates, caller));
    await failOver(leader, other);
  });

  test('cluster: a user logs in again after a restart of etcd and a change of users', async () => {
    const flags = flagsOf(withUsers, { 'cluster-user-file': userFile('node:p:w') });
    const { leader, other } = await startTwo(flags);
    // Tokens are in the memory of etcd.
    await member().kill();
    member().start(withUsers.members);
    await member().ready();
    const next = await leaderOf([leader, other]);
    const rest = next === leader ? other : leader;
    await inState(rest, 'streaming');
    const root = await member().post('/v3/auth/authenticate', { name: 'root', password: 'root' });
    const { token } = JSON.parse(root.text) as { token: string };
    const added = await member().post('/v3/auth/user/add', { name: 'x', password: 'x' }, token);
    expect(added).toMatchObject({ status: 200 });
    await failOver(next, rest);
  });

  test.each<[string, string, Flags, RegExp]>([
    ['a wrong password', 'node:wrong', {}, /authentication failed/],
    ['a prefix without permission', 'node:p:w', { name: 'other' }, /permission denied/],
    ['an unknown authority', 'node:p:w', { 'cluster-ca': file('caller.pem') }, /certificate/],
  ])(
    'cluster: names %s in its status and does not lead',
    async (_, user, { name = 'secure', ...more }, problem) => {
      const cluster = `etcds://127.0.0.1:${member().port}/${name}`;
      const own = { cluster, 'cluster-user-file': userFile(user), ...more };
      const node = await nodes.start(flagsOf(withUsers, own));
      const problemOf = async () => (await node.status()).cluster?.problem ?? '';
      await expect.poll(problemOf).toMatch(problem);
      expect((await node.status()).state).not.toBe('leading');
    },
    60_000,
  );
});
