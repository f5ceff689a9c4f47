import type { Attempt } from '../../core/task.js';
import { maxStoredAttempts } from '../port/task-row.js';

const maxInlineBytes = 1_024;

export type StoredAttempt = [
  attempt: number,
  redrive: number,
  startedAt: number,
  endedAt: number,
  durationMs: number,
  outcome: Attempt['outcome'],
  errorType: string | null,
  message: string | null,
  httpStatus: number | null,
  retryAfterMs: number | null,
  nextAttemptAt: number | null,
  responseSnippet: string | null,
  url: string | null,
  remoteIp: string | null,
  nodeId: string,
  traceId: string | null,
];

export function encodeAttempt(attempt: Attempt): Buffer {
  return Buffer.from(JSON.stringify(storedAttempt(attempt)));
}

export function decodeAttempt(bytes: Buffer): Attempt {
  return attemptOf(JSON.parse(bytes.toString()) as StoredAttempt);
}

/** Whether an attempt is small enough to be stored in the row of its task. */
export function isSmall(attempt: Attempt): boolean {
  const texts = [attempt.message, attempt.responseSnippet, attempt.url];
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 0) <= maxInlineBytes;
}

/** Numbers of the attempts with rows of their own: the first one and the last ones. */
export function attemptsApart(task: {
  attemptsApart: number;
  lastAttempt: Attempt | null;
}): number[] {
  const numbers: number[] = [];
  const all = task.attemptsApart + (task.lastAttempt ? 1 : 0);
  for (let i = 0; i < task.attemptsApart; i++) {
    if (i === 0 || i > all - maxStoredAttempts) numbers.push(i);
  }
  return numbers;
}

export function storedAttempt(attempt: Attempt): StoredAttempt {
  return [
    attempt.attempt,
    attempt.redrive,
    attempt.startedAt,
    attempt.endedAt,
    attempt.durationMs,
    attempt.outcome,
    attempt.errorType,
    attempt.message,
    attempt.httpStatus,
    attempt.retryAfterMs,
    attempt.nextAttemptAt,
    attempt.responseSnippet,
    attempt.url,
    attempt.remoteIp,
    attempt.nodeId,
    attempt.traceId,
  ];
}

export function attemptOf(stored: StoredAttempt): Attempt {
  return {
    attempt: stored[0],
    redrive: stored[1],
    startedAt: stored[2],
    endedAt: stored[3],
    durationMs: stored[4],
    outcome: stored[5],
    errorType: stored[6],
    message: stored[7],
    httpStatus: stored[8],
    retryAfterMs: stored[9],
    nextAttemptAt: stored[10],
    responseSnippet: stored[11],
    url: stored[12],
    remoteIp: stored[13],
    nodeId: stored[14],
    traceId: stored[15],
  };
}
