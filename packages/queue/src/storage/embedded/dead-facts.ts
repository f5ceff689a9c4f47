import { deadFacts, type DeadFacts } from '../port/dead-letters.js';
import type { TaskRow } from '../port/task-row.js';
import { timeOf } from './keys.js';
import { encodeJson } from './queue-rows.js';

/** Value of a dead task's index row, so that a filter need not read the task. */
type StoredFacts = [errorType: string | null, httpStatus: number | null, handlerRef: string];

export function encodeFacts(row: TaskRow): Buffer {
  const { errorType, httpStatus, handlerRef } = deadFacts(row);
  return encodeJson([errorType, httpStatus, handlerRef] satisfies StoredFacts);
}

export function factsOf({ key, value }: { key: Buffer; value: Buffer }): DeadFacts {
  const [errorType, httpStatus, handlerRef] = JSON.parse(value.toString()) as StoredFacts;
  return { deadAt: timeOf(key), handlerRef, errorType, httpStatus };
}
