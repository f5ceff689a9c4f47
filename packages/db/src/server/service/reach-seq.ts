import { refuse } from '@millrace/engine/value/refusal';
import type { CallContext } from './call.js';
import type { ServiceParts } from './parts.js';
import { wholeNumber } from './values.js';

const patienceMs = 5_000;

/**
 * Waits until the database has commit `minSeq`, so that a caller can read its own writes on any
 * node. Refuses REPLICA_BEHIND shortly before the caller's deadline.
 */
export async function reachSeq(
  parts: Pick<ServiceParts, 'database' | 'clock'>,
  minSeq: bigint,
  context: CallContext,
): Promise<void> {
  if (minSeq === 0n) return;
  const wanted = wholeNumber(minSeq, 'min_seq');
  const { core } = parts.database;
  if (core.durable.seq >= wanted) return;
  const leftMs = context.deadline === undefined ? patienceMs : context.deadline - parts.clock.now();
  const waitMs = context.deadline === undefined ? leftMs : leftMs - Math.max(20, leftMs / 10);
  await new Promise<void>((resolve, reject) => {
    const end = (settle: () => void) => {
      timer.cancel();
      stop();
      context.signal.removeEventListener('abort', onAbort);
      settle();
    };
    const onAbort = () => end(() => reject(context.signal.reason));
    const timer = parts.clock.after(Math.max(0, waitMs), () =>
      end(() => reject(behind(core.durable.seq, wanted))),
    );
    const stop = core.onDurable(() => {
      if (core.closed) end(() => reject(core.closed));
      else if (core.durable.seq >= wanted) end(resolve);
    });
    if (context.signal.aborted) onAbort();
    else context.signal.addEventListener('abort', onAbort);
  });
}

/** A transaction only reads the snapshot it began with. */
export function checkReadSeq(readSeq: number, minSeq: bigint): void {
  if (minSeq !== 0n && BigInt(readSeq) < minSeq) {
    throw behind(readSeq, wholeNumber(minSeq, 'min_seq'));
  }
}

function behind(seq: number, minSeq: number): Error {
  return refuse(
    'REPLICA_BEHIND',
    `This node is at commit ${seq} and did not reach ${minSeq} in time. Retry, or read from the leader.`,
    { seq: String(seq), min_seq: String(minSeq) },
  );
}
