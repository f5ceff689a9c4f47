import type { DaemonOperations } from '@millrace/contract/daemon';

/** What the daemon serves: all of its contract but the webhook, which it sends itself. */
export type ServedOperations = Omit<DaemonOperations, 'notify'>;
