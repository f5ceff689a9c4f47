import type { QueueSchema } from '@millrace/contract/queue';
import type { Check, DocumentSchemas } from '@millrace/kit/http';
import { failBody } from './refusal.js';

type InvalidCode = Parameters<typeof failBody>[0];

/** Validates the body of a request against its schema in the contract. */
export interface BodyCheck<Body> {
  /** Returns the typed body, or throws a refusal with a pointer to each fault. */
  read(body: unknown): Body;
}

type Claim = QueueSchema<'ClaimRequest'>;

/** Bodies that operations validate themselves, after their own lookups. */
export interface BodyChecks {
  task: BodyCheck<QueueSchema<'SubmitTaskRequest'>>;
  redrive: BodyCheck<QueueSchema<'RedriveSelector'>>;
  purge: BodyCheck<QueueSchema<'PurgeSelector'>>;
  complete: BodyCheck<QueueSchema<'CompleteTaskRequest'>>;
  fail: BodyCheck<QueueSchema<'FailTaskRequest'>>;
  extend: BodyCheck<QueueSchema<'ExtendTaskRequest'>>;
  cancel: BodyCheck<QueueSchema<'CancelTaskRequest'>>;
  update: BodyCheck<QueueSchema<'UpdateTaskRequest'>>;
  cancelTasks: BodyCheck<QueueSchema<'CancelSelector'>>;
  /** Fills in the defaults. */
  claim: BodyCheck<Required<Omit<Claim, 'handlers'>> & Pick<Claim, 'handlers'>>;
  /** The list alone; its items are checked one by one. */
  settle: BodyCheck<{ items: readonly unknown[] }>;
  settleItem: BodyCheck<QueueSchema<'SettleItem'>>;
  /** Fills in the defaults. */
  config: BodyCheck<QueueSchema<'QueueConfigInput'>>;
  /** Fills in the defaults. */
  schedule: BodyCheck<QueueSchema<'ScheduleInput'>>;
}

export function bodyChecks(schemas: DocumentSchemas): BodyChecks {
  const task = schemas.named('SubmitTaskRequest');
  // Compiled at startup, so that the first submit does not wait for it.
  task.prepare();
  return {
    task: bodyCheck('INVALID_TASK', task),
    redrive: bodyCheck('INVALID_SELECTOR', schemas.named('RedriveSelector')),
    purge: bodyCheck('INVALID_SELECTOR', schemas.named('PurgeSelector')),
    complete: bodyCheck('INVALID_TASK', schemas.named('CompleteTaskRequest')),
    fail: bodyCheck('INVALID_TASK', schemas.named('FailTaskRequest')),
    extend: bodyCheck('INVALID_TASK', schemas.named('ExtendTaskRequest')),
    schedule: bodyCheck('INVALID_SCHEDULE', schemas.named('ScheduleInput', { fillDefaults: true })),
    claim: bodyCheck('INVALID_CLAIM', schemas.named('ClaimRequest', { fillDefaults: true })),
    settle: listCheck('INVALID_CLAIM', schemas.named('SettleTasksRequest'), maxSettled),
    settleItem: bodyCheck('INVALID_CLAIM', schemas.named('SettleItem')),
    cancel: bodyCheck('INVALID_TASK', schemas.named('CancelTaskRequest')),
    update: bodyCheck('INVALID_TASK', schemas.named('UpdateTaskRequest')),
    cancelTasks: bodyCheck('INVALID_SELECTOR', schemas.named('CancelSelector')),
    config: bodyCheck('INVALID_CONFIG', schemas.named('QueueConfigInput', { fillDefaults: true })),
  };
}

/** `maxItems` of SettleTasksRequest. */
const maxSettled = 100;

/** Checks everything but the items. */
function listCheck(
  code: InvalidCode,
  check: Check,
  maxItems: number,
): BodyCheck<{ items: readonly unknown[] }> {
  return {
    read: (body) => {
      const items = (body as { items?: unknown } | null)?.items;
      const shown = Array.isArray(items) ? { ...(body as object), items: [] } : body;
      if (!check.accepts(shown)) throw failBody(code, check.faults(shown));
      const list = items as readonly unknown[];
      if (list.length <= maxItems) return { items: list };
      throw failBody(code, [{ pointer: '/items', message: `must have at most ${maxItems} items` }]);
    },
  };
}

function bodyCheck<Body>(code: InvalidCode, check: Check): BodyCheck<Body> {
  return {
    read: (body) => {
      if (check.accepts(body)) return body as Body;
      throw failBody(code, check.faults(body));
    },
  };
}
