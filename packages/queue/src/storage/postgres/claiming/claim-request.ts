import type { ClaimRequest } from '../../task-store.js';

export interface FilteredClaimRequest extends ClaimRequest {
  /** Only tasks for these handlers; absent: any. */
  handlers?: readonly string[] | undefined;
}
