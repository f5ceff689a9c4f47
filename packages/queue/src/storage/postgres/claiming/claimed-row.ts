import type { LastError, WholeTask } from '../../../core/task.js';
import { attemptsOf } from '../rows/history.js';
import type { ClaimRequest } from '../../port/task-store.js';

/** A row of the claim statement. Without a position it has the room alone. */
export type ClaimedRow = [
  /** How many tasks the limits allowed. */
  room: number,
  /** From 1: the index of its token. */
  position: number | null,
  id: string,
  priority: number,
  groupKey: string | null,
  expiresAt: number | null,
  attempt: number,
  totalAttempts: number,
  redriveCount: number,
  lastError: string | null,
  attempts: string,
  handlerRef: string,
  contentType: string,
  headers: string | null,
  createdAt: number,
  submittedBy: string,
  payload: Buffer,
];

export function toClaimedTask(
  row: ClaimedRow,
  request: ClaimRequest,
  tokens: readonly string[],
): WholeTask {
  const [, position, id, priority, groupKey, expiresAt, attempt, totalAttempts] = row;
  const [redriveCount, lastError, attempts, handlerRef, contentType, headers] = row.slice(8) as [
    number,
    string | null,
    string,
    string,
    string,
    string | null,
  ];
  return {
    id,
    queue: request.queue,
    handlerRef,
    status: 'IN_FLIGHT',
    payloadContentType: contentType,
    headers: headers === null ? {} : (JSON.parse(headers) as Record<string, string>),
    priority,
    groupKey,
    attempt,
    totalAttempts,
    redriveCount,
    createdAt: row[14],
    updatedAt: request.now,
    dueAt: null,
    expiresAt,
    lease: {
      token: tokens[position! - 1]!,
      expiresAt: request.leaseExpiresAt,
      nodeId: request.nodeId,
      startedAt: request.now,
      isAsync: false,
    },
    completedAt: null,
    deadAt: null,
    deadReason: null,
    lastError: lastError === null ? null : (JSON.parse(lastError) as LastError),
    submittedBy: row[15],
    payload: row[16],
    attempts: attemptsOf(attempts),
  };
}
