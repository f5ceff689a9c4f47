import type { DaemonOperations } from '@millrace/contract/daemon';

/** Operations that the daemon serves: its contract except the webhook, which it sends. */
export type ServedOperations = Omit<DaemonOperations, 'notify'>;
