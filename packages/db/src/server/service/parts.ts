import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Database } from '../../engine/database.js';
import type { Replication } from './replication.js';

/** What the methods are made of. */
export interface ServiceParts {
  /** The open database. Refuses NOT_READY while there is none. */
  readonly database: Database;
  /** Has the database as it stands, also while there is nothing to serve yet. */
  readonly holder: { readonly current: Database; isServed: boolean; lineageId: string };
  readonly replication: Replication;
  readonly clock: Clock;
  readonly log: Log;
  /** Queries that work longer than this are logged with their plan; 0: none. */
  readonly slowQueryMs: number;
  /** Id of the node, made once for its data directory. */
  readonly nodeId: string;
  readonly version: string;
  /** Whether gRPC and REST need a key. */
  readonly auth: 'keys' | 'none';
}
