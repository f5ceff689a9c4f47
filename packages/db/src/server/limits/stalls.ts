import type { StreamingRpc } from '../service/call.js';

const queryStallMs = 60_000;
const watchStallMs = 600_000;

/**
 * How long a caller may read nothing from a stream. A query or backup holds a snapshot, which
 * blocks reuse of file space; a watch holds only a slot, and its caller can resume later.
 */
export function stallMsOf(rpc: StreamingRpc): number {
  return rpc === 'Watch' ? watchStallMs : queryStallMs;
}
