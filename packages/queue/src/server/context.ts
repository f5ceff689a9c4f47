import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Allowlist } from '@millrace/kit/outbound';
import type { Random } from '@millrace/kit/random';
import type { Delivery } from '../delivery/index.js';
import type { BodyChecks } from '../operations/checks.js';
import type { TaskStore } from '../storage/task-store.js';
import type { Cursors } from './cursors.js';
import type { SubmitLimits } from './limits/submit-limits.js';
import type { Readiness } from './readiness.js';
import type { Secrets } from './secrets.js';

/** What an operation works with. */
export interface QueueContext {
  readonly store: TaskStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly delivery: DeliveryDesk;
  /** As they are at this moment: the file may change. */
  readonly secrets: () => Secrets;
  readonly allowlist: Allowlist;
  readonly cursors: Cursors;
  readonly submitLimits: SubmitLimits;
  readonly checks: BodyChecks;
  readonly readiness: Readiness;
}

/** What operations ask of the delivery. */
export type DeliveryDesk = Pick<
  Delivery,
  'breakerOf' | 'queueChanged' | 'waitingFor' | 'complete' | 'fail' | 'extend' | 'probe'
>;
