import type { RowReader } from '@millrace/engine';
import type {
  Attempt,
  FullTask,
  LastError,
  Lease,
  Progress,
  TaskOptions,
  Tombstone,
  WholeTask,
} from '../../core/task.js';
import {
  deadFacts,
  type DeadFacts,
  maxStoredAttempts,
  type SettledClaim,
  type TaskRow,
  toFullTask,
  toWholeTask,
} from '../port/store-parts.js';
import type { TaskFilter } from '../port/task-list.js';
import type { TaskFlow } from '../../core/flow.js';
import type { NewTask } from '../port/task-store.js';
import { attemptKey, idKey, kinds, timeOf } from './keys.js';
import { encodeJson } from './queue-state.js';

/**
 * A task's row: what never changes, written once and copied from then on, and what does.
 *
 *   form u8 | length of the head u32 | head | length of the payload u32 | payload | state
 *
 * Head and state are JSON. A payload beyond `maxInlineBytes` has a row of its own, so that a claim
 * does not write it again; so has an attempt that is not the last or not small.
 */
export interface StoredTask {
  row: TaskRow;
  /** Number of the queue, unique also among queues with the same name. */
  queueNumber: number;
  /** Count of all attempts that were stored in rows of their own. */
  attemptsApart: number;
  /** The last attempt, if it is stored in this row. */
  lastAttempt: Attempt | null;
  /** While in flight: the list of its lease. */
  leaseList: string;
  /** Undefined: in a row of its own. */
  payload: Uint8Array | undefined;
  /** Its result is in a row of its own. */
  hasResult: boolean;
  /** Form, head and payload as stored. */
  fixed: Buffer;
}

export const maxInlineBytes = 1_024;

const forms = { task: 1, payloadApart: 2, tombstone: 3 } as const;
const statusNames = ['PENDING', 'IN_FLIGHT', 'SUCCEEDED', 'DEAD'] as const;
const deadReasons = [
  null,
  'ATTEMPTS_EXHAUSTED',
  'PERMANENT',
  'EXPIRED',
  'CANCELLED',
  'DEPENDENCY_FAILED',
  'FLOW_STUCK',
] as const;
const verdicts = ['succeeded', 'retry', 'dead', 'handed_back', 'suspended'] as const;

type Head = [
  queueNumber: number,
  queue: string,
  handlerRef: string,
  payloadContentType: string,
  headers: Readonly<Record<string, string>> | 0,
  priority: number,
  groupKey: string | null,
  createdAt: number,
  submittedBy: string,
  /** Absent if there are none. */
  options?: TaskOptions,
];

type State = [
  status: number,
  attempt: number,
  totalAttempts: number,
  redriveCount: number,
  updatedAt: number,
  /** PENDING: due time. SUCCEEDED and DEAD: end time. */
  at: number,
  expiresAt: number | null,
  deadReason: number,
  started: 0 | 1,
  attemptsApart: number,
  lease: StoredLease | 0,
  settled: [token: string, verdict: number] | 0,
  lastError: [errorType: string, message: string, httpStatus: number | null, at: number] | 0,
  lastAttempt: StoredAttempt | 0,
  /** Absent if there is nothing to say. */
  extra?: Extra,
];

/** What few tasks have. */
interface Extra {
  progress?: [percent: number | null, message: string | null, at: number];
  key?: [key: string, until: number | null];
  /** The result is in a row of its own, or was dropped. */
  result?: 'stored' | 'dropped';
  flow?: TaskFlow;
}

type StoredLease = [
  token: string,
  expiresAt: number,
  nodeId: string,
  startedAt: number,
  isAsync: 0 | 1,
  list: string,
];

const noHeaders: Readonly<Record<string, string>> = Object.freeze({});

/** The part of a row that never changes, except for priority and payload. */
export function encodeFixed(task: NewTask, queueNumber: number, now: number): Buffer {
  const isApart = task.payload.length > maxInlineBytes;
  return fixedOf(task, queueNumber, now, isApart ? undefined : task.payload);
}

/** The same of a stored task after a change of its priority or payload. */
export function encodeFixedAgain({ row, queueNumber, payload }: StoredTask): Buffer {
  return fixedOf(row, queueNumber, row.createdAt, payload);
}

type HeadFields = Pick<
  NewTask,
  | 'queue'
  | 'handlerRef'
  | 'payloadContentType'
  | 'headers'
  | 'priority'
  | 'groupKey'
  | 'submittedBy'
  | 'options'
>;

/** `payload` undefined: it has a row of its own. */
function fixedOf(
  task: HeadFields,
  queueNumber: number,
  createdAt: number,
  payload: Uint8Array | undefined,
): Buffer {
  const hasHeaders = Object.keys(task.headers).length > 0;
  const head: Head = [
    queueNumber,
    task.queue,
    task.handlerRef,
    task.payloadContentType,
    hasHeaders ? task.headers : 0,
    task.priority,
    task.groupKey,
    createdAt,
    task.submittedBy,
  ];
  if (task.options) head.push(task.options);
  const text = JSON.stringify(head);
  const length = Buffer.byteLength(text);
  const payloadBytes = payload?.length ?? 0;
  const bytes = Buffer.allocUnsafe(9 + length + payloadBytes);
  bytes[0] = payload ? forms.task : forms.payloadApart;
  bytes.writeUInt32BE(length, 1);
  bytes.write(text, 5);
  bytes.writeUInt32BE(payloadBytes, 5 + length);
  if (payload) bytes.set(payload, 9 + length);
  return bytes;
}

export function encodeTask(task: StoredTask): Buffer {
  const { row, fixed, attemptsApart, lastAttempt, leaseList } = task;
  const { lease, settled, lastError } = row;
  const state: State = [
    statusNames.indexOf(row.status),
    row.attempt,
    row.totalAttempts,
    row.redriveCount,
    row.updatedAt,
    (row.dueAt ?? row.completedAt ?? row.deadAt) || 0,
    row.expiresAt,
    deadReasons.indexOf(row.deadReason),
    row.started ? 1 : 0,
    attemptsApart,
    lease ? storedLease(lease, leaseList) : 0,
    settled ? [settled.token, verdicts.indexOf(settled.verdict)] : 0,
    lastError ? [lastError.errorType, lastError.message, lastError.httpStatus, lastError.at] : 0,
    lastAttempt ? storedAttempt(lastAttempt) : 0,
  ];
  const extra = extraOf(task);
  if (extra) state.push(extra);
  const text = JSON.stringify(state);
  const length = Buffer.byteLength(text);
  const bytes = Buffer.allocUnsafe(fixed.length + length);
  bytes.set(fixed, 0);
  bytes.write(text, fixed.length);
  return bytes;
}

function extraOf({ row, hasResult }: StoredTask): Extra | undefined {
  const { progress, uniqueKey, uniqueUntil, resultDropped, flow } = row;
  const hasMore = flow || resultDropped;
  if (!progress && uniqueKey === null && !hasResult && !hasMore) return undefined;
  return {
    ...(flow && { flow }),
    ...(progress && { progress: [progress.percent, progress.message, progress.at] }),
    ...(uniqueKey !== null && { key: [uniqueKey, uniqueUntil] }),
    ...((hasResult || resultDropped) && { result: hasResult ? 'stored' : 'dropped' }),
  };
}

export function encodeTombstone(tombstone: Tombstone): Buffer {
  const { queue, handlerRef, status, purgedAt } = tombstone;
  const text = JSON.stringify([queue, handlerRef, statusNames.indexOf(status), purgedAt]);
  return Buffer.concat([Buffer.of(forms.tombstone), Buffer.from(text)]);
}

/** Content of the row of an id. */
export function decodeTask(id: string, bytes: Buffer): StoredTask | Tombstone {
  if (bytes[0] === forms.tombstone) return decodeTombstone(id, bytes);
  const headEnd = 5 + bytes.readUInt32BE(1);
  const head = JSON.parse(bytes.toString('utf8', 5, headEnd)) as Head;
  const fixedEnd = headEnd + 4 + bytes.readUInt32BE(headEnd);
  const state = JSON.parse(bytes.toString('utf8', fixedEnd)) as State;
  return {
    row: rowOf(id, head, state),
    queueNumber: head[0],
    attemptsApart: state[9],
    lastAttempt: state[13] ? attemptOf(state[13]) : null,
    leaseList: state[10] ? state[10][5] : '',
    hasResult: state[14]?.result === 'stored',
    payload: bytes[0] === forms.task ? bytes.subarray(headEnd + 4, fixedEnd) : undefined,
    fixed: bytes.subarray(0, fixedEnd),
  };
}

/** Decodes a task only if it matches; most of its bytes need not be parsed to tell. */
export function decodeIfMatching(
  id: string,
  bytes: Buffer,
  { statuses, handlerRef, groupKey }: TaskFilter,
): StoredTask | undefined {
  if (bytes[0] === forms.tombstone) return undefined;
  const headEnd = 5 + bytes.readUInt32BE(1);
  const fixedEnd = headEnd + 4 + bytes.readUInt32BE(headEnd);
  // The state is a JSON array whose first element is the status, one digit.
  const status = statuses && statusNames[bytes[fixedEnd + 1]! - zeroDigit]!;
  if (status && !statuses.includes(status)) return undefined;
  if (handlerRef !== undefined || groupKey !== undefined) {
    const head = JSON.parse(bytes.toString('utf8', 5, headEnd)) as Head;
    if (handlerRef !== undefined && head[2] !== handlerRef) return undefined;
    if (groupKey !== undefined && head[6] !== groupKey) return undefined;
  }
  return decodeTask(id, bytes) as StoredTask;
}

const zeroDigit = 0x30;

export function isTombstone(found: StoredTask | Tombstone): found is Tombstone {
  return 'purgedAt' in found;
}

function decodeTombstone(id: string, bytes: Buffer): Tombstone {
  const [queue, handlerRef, status, purgedAt] = JSON.parse(bytes.toString('utf8', 1)) as [
    string,
    string,
    number,
    number,
  ];
  return { id, queue, handlerRef, status: statusNames[status]!, purgedAt };
}

function rowOf(id: string, head: Head, state: State): TaskRow {
  const status = statusNames[state[0]]!;
  const at = state[5];
  return {
    id,
    queue: head[1],
    handlerRef: head[2],
    status,
    payloadContentType: head[3],
    headers: head[4] || noHeaders,
    priority: head[5],
    groupKey: head[6],
    attempt: state[1],
    totalAttempts: state[2],
    redriveCount: state[3],
    createdAt: head[7],
    updatedAt: state[4],
    dueAt: status === 'PENDING' ? at : null,
    expiresAt: state[6],
    lease: leaseOf(state[10]),
    completedAt: status === 'SUCCEEDED' ? at : null,
    deadAt: status === 'DEAD' ? at : null,
    deadReason: deadReasons[state[7]]!,
    lastError: errorOf(state[12]),
    submittedBy: head[8],
    options: head[9],
    started: state[8] === 1,
    settled: settledOf(state[11]),
    progress: progressOf(state[14]),
    resultDropped: state[14]?.result === 'dropped',
    uniqueKey: state[14]?.key?.[0] ?? null,
    uniqueUntil: state[14]?.key?.[1] ?? null,
    flow: state[14]?.flow ?? null,
  };
}

function progressOf(extra: Extra | undefined): Progress | null {
  if (!extra?.progress) return null;
  const [percent, message, at] = extra.progress;
  return { percent, message, at };
}

function leaseOf(stored: State[10]): Lease | null {
  if (!stored) return null;
  const [token, expiresAt, nodeId, startedAt, isAsync] = stored;
  return { token, expiresAt, nodeId, startedAt, isAsync: isAsync === 1 };
}

function storedLease(lease: Lease, list: string): StoredLease {
  const { token, expiresAt, nodeId, startedAt, isAsync } = lease;
  return [token, expiresAt, nodeId, startedAt, isAsync ? 1 : 0, list];
}

function settledOf(stored: State[11]): SettledClaim | null {
  return stored ? { token: stored[0], verdict: verdicts[stored[1]]! } : null;
}

function errorOf(stored: State[12]): LastError | null {
  if (!stored) return null;
  const [errorType, message, httpStatus, at] = stored;
  return { errorType, message, httpStatus, at };
}

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

export function showWhole(rows: RowReader, task: StoredTask): WholeTask {
  return toWholeTask(task.row, payloadOf(rows, task), historyOf(rows, task));
}

/** The same with its result and everything else that is stored. */
export function showFull(rows: RowReader, task: StoredTask): FullTask {
  const result = task.hasResult ? rows.get(idKey(kinds.result, task.row.id)) : undefined;
  return toFullTask(task.row, showWhole(rows, task), result?.toString() ?? null);
}

function payloadOf(rows: RowReader, task: StoredTask): Uint8Array {
  if (task.payload) return task.payload;
  const payload = rows.get(idKey(kinds.payload, task.row.id));
  if (!payload) throw new Error(`The payload of the task ${task.row.id} is not there`);
  return payload;
}

function historyOf(rows: RowReader, task: StoredTask): Attempt[] {
  const history: Attempt[] = [];
  for (const number of attemptsApart(task)) {
    const bytes = rows.get(attemptKey(task.row.id, number));
    if (!bytes) throw new Error(`Attempt ${number} of the task ${task.row.id} is not there`);
    history.push(decodeAttempt(bytes));
  }
  if (task.lastAttempt) history.push(task.lastAttempt);
  return history;
}

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
