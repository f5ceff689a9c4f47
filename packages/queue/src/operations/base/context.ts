import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Allowlist } from '@millrace/kit/outbound';
import type { Random } from '@millrace/kit/random';
import type { BackgroundControl, History, TaskObserver } from '../../background/index.js';
import type { Delivery } from '../../delivery/index.js';
import type { SecretLookup } from '../../core/queue.js';
import type { TaskStore } from '../../storage/port/task-store.js';
import type { BodyChecks } from './checks.js';
import type { Cursors } from './cursors.js';
import type { SubmitLimits } from './submit-limits.js';
import type { Readiness } from './readiness.js';
import type { TaskWaits } from './task-waits.js';
import type { TurnsByKey } from './turns-by-key.js';

/** The dependencies of every operation. */
export interface QueueContext {
  readonly store: TaskStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly delivery: DeliveryControl;
  readonly background: BackgroundControl;
  readonly history: Pick<History, 'read' | 'totals' | 'unsaved'>;
  readonly observer: TaskObserver;
  readonly findSecret: SecretLookup;
  /** Why the newest secrets file is not in use; undefined if it is. */
  readonly secretsFault: () => string | undefined;
  readonly allowlist: Allowlist;
  readonly cursors: Cursors;
  readonly submitLimits: SubmitLimits;
  readonly checks: BodyChecks;
  readonly readiness: Readiness;
  readonly waits: TaskWaits;
  readonly scheduleLimits: { readonly maxCount: number; readonly maxBytes: number };
  /** Writes of schedules, one at a time for each queue. */
  readonly scheduleWrites: TurnsByKey;
  /** Maximum waiting claims of a principal on a queue. */
  readonly maxWaitingClaims: number;
}

/** The calls of delivery that operations make. */
export type DeliveryControl = Pick<
  Delivery,
  | 'breakerOf'
  | 'queueChanged'
  | 'queueDeleted'
  | 'waitingFor'
  | 'claim'
  | 'waitingClaims'
  | 'handBack'
  | 'workers'
  | 'onPulledLeaseEnded'
  | 'settleAll'
  | 'waitingForAll'
  | 'cancelled'
  | 'complete'
  | 'fail'
  | 'extend'
  | 'probe'
>;
