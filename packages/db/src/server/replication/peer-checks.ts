import type { Peer } from '@millrace/contract/db';
import type { Database } from '@millrace/engine/api/database';
import { hashToBigInt } from '@millrace/engine/value/hash';
import { badField } from '../service/values.js';
import { diverged } from './refusals.js';

// Limit of the log format.
const maxEpoch = 2n ** 32n - 2n;
const maxNameLength = 256;

/** Refuses invalid peer information. */
export function checkPeer({ nodeId, address, epoch }: Peer): void {
  if (nodeId === '' || nodeId.length > maxNameLength) {
    throw badField('peer.node_id', `must have 1 to ${maxNameLength} characters`);
  }
  if (address.length > maxNameLength) {
    throw badField('peer.address', `must have ${maxNameLength} characters at most`);
  }
  if (epoch > maxEpoch) throw badField('peer.epoch', 'is larger than any epoch');
}

/** Refuses DIVERGED when the peer's last commit is not in this database's history. */
export function checkHistory({ core, watches }: Database, peer: Peer): void {
  // The peer has no history yet.
  if (peer.lineageId === '') return;
  const { seq, oldestSeq } = core.durable;
  const acked = Number(peer.ackedSeq);
  if (acked > seq) throw diverged(acked, seq);
  // Older than the log; its watch will be refused with WATCH_COMPACTED.
  if (acked < oldestSeq - 1) return;
  if (hashToBigInt(watches.chainAt(acked)) !== peer.chainHash) throw diverged(acked, acked - 1);
}
