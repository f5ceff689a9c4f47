import type { Core } from '../core/core.js';
import { refuse } from '../value/refusal.js';
import { remember } from './requests.js';

/** How transactions end, and what is reported about ended ones. */

export interface CommitResult {
  seq: number;
  operations: number;
  committedAt: number;
}

/** Stores the result of a commit for ten minutes, in case the answer was lost. */
export function rememberCommit(core: Core, id: string, result: CommitResult): void {
  remember(core, commitRow(id), result.committedAt, Buffer.from(JSON.stringify(result)));
}

export function rememberedCommit(core: Core, id: string): CommitResult | undefined {
  if (core.closed) throw core.closed;
  const row = core.store.get('requests', commitRow(id));
  return row && (JSON.parse(row.toString()) as CommitResult);
}

function commitRow(id: string): Buffer {
  return Buffer.from(`t:${id}`);
}

export function expired(id: string) {
  return refuse(
    'TX_EXPIRED',
    `The transaction ${id} has expired (60 s in all, 10 s without a call); begin another.`,
    { tx_id: id },
  );
}

export function closed(id: string) {
  return refuse('TX_CLOSED', `The transaction ${id} has ended; begin another.`, { tx_id: id });
}
