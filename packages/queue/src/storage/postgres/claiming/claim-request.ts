import type { ClaimAsk } from '../../task-store.js';

export interface ClaimRequest extends ClaimAsk {
  /** Only tasks for these handlers; absent: any. */
  handlers?: readonly string[] | undefined;
}
