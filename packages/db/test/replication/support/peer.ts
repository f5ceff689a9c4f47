import { Database } from '@millrace/contract/db';
import { Refusal } from '@millrace/kit/errors';
import { Session } from '../../../src/client/session.js';
import { hashToBigInt } from '@millrace/engine/value/bytes';
import type { TestNode } from './nodes.js';

export interface PeerFields {
  nodeId: string;
  role: string;
  epoch: bigint;
  ackedSeq: bigint;
  chainHash: bigint;
  lineageId: string;
}

export type PeerCall = 'Watch' | 'Backup' | 'ReplicationStatus';

const { method: rpc } = Database;

/** Peer information of a follower that has all commits of the node. */
export async function kinOf(node: TestNode): Promise<PeerFields> {
  const { seq, chain } = node.server.database.core.durable;
  const { lineageId, epoch } = await node.status();
  return {
    nodeId: 'x',
    role: 'follower',
    epoch: BigInt(epoch),
    ackedSeq: BigInt(seq),
    chainHash: hashToBigInt(chain),
    lineageId,
  };
}

/** Calls a node like a peer; returns the refusal, or undefined. */
export async function speak(
  { url }: TestNode,
  call: PeerCall,
  peer: PeerFields,
  startSeq = peer.ackedSeq + 1n,
): Promise<{ code: string; metadata: unknown } | undefined> {
  const session = new Session(url, { retry: false });
  try {
    if (call === 'ReplicationStatus') await session.callOnce(rpc.replicationStatus, { peer });
    else if (call === 'Backup') await session.streamOnce(rpc.backup, { peer }).next();
    else {
      const heartbeat = { seconds: 0n, nanos: 10_000_000 };
      const messages = session.streamOnce(rpc.watch, { peer, startSeq, heartbeat });
      await messages.next();
      await messages.return();
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { code: error.code, metadata: error.extra.members?.['metadata'] };
  } finally {
    await session.close();
  }
}
