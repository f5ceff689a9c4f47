import type { LastError, WholeTask } from '../../../core/task.js';
import { attemptsOf } from '../history.js';
import type { ClaimRequest } from './claims.js';

/** A row that the claim statement returns. */
export type ClaimedRow = [
  id: string,
  /** From 1: the index of its token. */
  position: number,
  priority: number,
  expiresAt: number | null,
  past: string | null,
  handlerRef: string,
  contentType: string,
  headers: string | null,
  createdAt: number,
  submittedBy: string,
  payload: Buffer,
  groupKey: string | null,
];

/** Attempt, total attempts, redrives, last error, history as text. */
type Past = [number, number, number, LastError | null, string];
const noPast: Past = [1, 1, 0, null, ''];

export function toClaimedTask(
  row: ClaimedRow,
  request: ClaimRequest,
  tokens: readonly string[],
): WholeTask {
  const [id, position, priority, expiresAt, pastText, handlerRef, contentType, headers] = row;
  const past = pastText === null ? noPast : (JSON.parse(`[${pastText}]`) as Past);
  return {
    id,
    queue: request.queue,
    handlerRef,
    status: 'IN_FLIGHT',
    payloadContentType: contentType,
    headers: headers === null ? {} : (JSON.parse(headers) as Record<string, string>),
    priority,
    groupKey: row[11],
    attempt: past[0],
    totalAttempts: past[1],
    redriveCount: past[2],
    createdAt: row[8],
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
    submittedBy: row[9],
    payload: row[10],
    attempts: attemptsOf(past[4]),
  };
}
