import type { StreamingRpc } from '../service/call.js';

const queryStallMs = 60_000;
const watchStallMs = 600_000;

/**
 * How long a caller may take nothing of a stream. A query or a backup holds a snapshot, which
 * keeps the file from being used again; a watch holds only its place among the watches, and its
 * caller goes on later with the resume token.
 */
export function stallMsOf(rpc: StreamingRpc): number {
  return rpc === 'Watch' ? watchStallMs : queryStallMs;
}
