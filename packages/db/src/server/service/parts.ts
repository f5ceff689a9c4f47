import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Database } from '@millrace/engine/api/database';
import type { SlowQueryLog } from './index-advice.js';
import type { ClusterState, Replication } from './replication.js';

/** Dependencies of the methods. */
export interface ServiceParts {
  /** The open database. Refuses NOT_READY while there is none. */
  readonly database: Database;
  /** Gives access to the database even while there is nothing to serve yet. */
  readonly handle: { readonly current: Database; isServed: boolean; lineageId: string };
  readonly replication: Replication;
  readonly clock: Clock;
  readonly log: Log;
  /** Queries that run longer than this are logged with their plan; 0 disables it. */
  readonly slowQueryMs: number;
  /** The queries that took longer, for advice on indexes. */
  readonly slowQueries: SlowQueryLog;
  /** Id of the node, created once per data directory. */
  readonly nodeId: string;
  readonly version: string;
  /** Whether gRPC and REST need a key. */
  readonly auth: 'keys' | 'none';
  /** Undefined: the node belongs to no cluster. */
  readonly cluster: () => ClusterState | undefined;
}
