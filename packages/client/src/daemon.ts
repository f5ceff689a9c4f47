import type { DaemonPaths } from '@millrace/contract/daemon';
import { requestsTo, type ClientOptions } from './requests.js';

export type DaemonClient = ReturnType<typeof daemonClient>;

/** The daemon's operations by method and path; `bodyOf` around a call gives its body or throws. */
export function daemonClient(options: ClientOptions) {
  return requestsTo<DaemonPaths>(options);
}
