import {
  daemonOperations,
  type DaemonOperationId,
  type DaemonOperations,
} from '@millrace/contract/daemon';
import { createClient, type ApiClient, type ClientOptions } from './operations.js';

/** Without the webhooks, which the server sends. */
type Served = Pick<DaemonOperations, DaemonOperationId>;

export type DaemonClient = ApiClient<Served>;

export function createDaemonClient(options: ClientOptions): DaemonClient {
  return createClient<Served>(daemonOperations, options);
}
