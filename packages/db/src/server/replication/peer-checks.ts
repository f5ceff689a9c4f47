import type { Peer } from '@millrace/contract/db';
import type { Database } from '../../engine/database.js';
import { hashToBigInt } from '../../engine/hash.js';
import { badField } from '../service/values.js';
import { diverged } from './refusals.js';

// As the log has room for.
const mostEpochs = 2n ** 32n - 2n;
const longestName = 256;

/** Refuses what no node says of itself. */
export function checkPeer({ nodeId, address, epoch }: Peer): void {
  if (nodeId === '' || nodeId.length > longestName) {
    throw badField('peer.node_id', `must have 1 to ${longestName} characters`);
  }
  if (address.length > longestName) {
    throw badField('peer.address', `must have ${longestName} characters at most`);
  }
  if (epoch > mostEpochs) throw badField('peer.epoch', 'is more than there can be');
}

/** Refuses DIVERGED when the last commit of the peer is not in the history of this database. */
export function checkHistory({ core, watches }: Database, peer: Peer): void {
  // It has no history yet.
  if (peer.lineageId === '') return;
  const { seq, oldestSeq } = core.durable;
  const acked = Number(peer.ackedSeq);
  if (acked > seq) throw diverged(acked, seq);
  // Too long ago to be told; its stream will hear so.
  if (acked < oldestSeq - 1) return;
  if (hashToBigInt(watches.chainAt(acked)) !== peer.chainHash) throw diverged(acked, acked - 1);
}
