import type { QueueOperationId, QueueOperations } from '@millrace/contract/queue';
import type { Handlers } from '@millrace/kit/http';
import type { Principal } from '../operations/base/principal.js';

/** The operations that are served; the document also describes the outgoing callback. */
export type Served = Pick<QueueOperations, QueueOperationId>;
export type QueueHandlers = Handlers<Served, Principal>;
