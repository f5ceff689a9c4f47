import type { LastError, WholeTask } from '../../../core/task.js';
import { attemptsOf } from '../rows/history.js';
import type { ClaimRequest } from '../../port/task-store.js';

/** The last row of the claim statement. `room`: how many tasks the limits allowed. */
export type RoomRow = [id: null, room: number, ...unknown[]];

/** A claimed task as the claim statement returns it. */
export type ClaimedRow = [
  id: string,
  /** From 1: the index of its token. */
  position: number,
  priority: number,
  groupKey: string | null,
  expiresAt: number | null,
  past: string | null,
];

/** Immutable columns of a task. */
export type FixedRow = [
  id: string,
  handlerRef: string,
  contentType: string,
  headers: string | null,
  createdAt: number,
  submittedBy: string,
  payload: Buffer,
];

/** Attempt, total attempts, redrives, last error, history as text. */
type PastAttempts = [number, number, number, LastError | null, string];
const noPastAttempts: PastAttempts = [1, 1, 0, null, ''];

export function toClaimedTask(
  claimed: ClaimedRow,
  fixed: FixedRow,
  request: ClaimRequest,
  tokens: readonly string[],
): WholeTask {
  const [id, position, priority, groupKey, expiresAt, pastText] = claimed;
  const [, handlerRef, contentType, headers, createdAt, submittedBy, payload] = fixed;
  const past = pastText === null ? noPastAttempts : (JSON.parse(`[${pastText}]`) as PastAttempts);
  return {
    id,
    queue: request.queue,
    handlerRef,
    status: 'IN_FLIGHT',
    payloadContentType: contentType,
    headers: headers === null ? {} : (JSON.parse(headers) as Record<string, string>),
    priority,
    groupKey,
    attempt: past[0],
    totalAttempts: past[1],
    redriveCount: past[2],
    createdAt,
    updatedAt: request.now,
    dueAt: null,
    expiresAt,
    lease: {
      token: tokens[position - 1]!,
      expiresAt: request.leaseExpiresAt,
      nodeId: request.nodeId,
      startedAt: request.now,
      isAsync: false,
    },
    completedAt: null,
    deadAt: null,
    deadReason: null,
    lastError: past[3],
    submittedBy,
    payload,
    attempts: attemptsOf(past[4]),
  };
}
