import { UsageError } from '@millrace/kit/errors';
import { canonicalJson } from '../../core/audit.js';
import {
  idOfMoved,
  isMovedTask,
  textOf,
  type Mark,
  type Moved,
  type Source,
  type Target,
} from './moved.js';

export interface TransferTally {
  queues: number;
  tasks: number;
  audit_records: number;
  /** An earlier run had moved some of the tasks. */
  resumed: boolean;
}

export interface TransferWatch {
  /** Called with the number of tasks moved or compared so far; the transfer waits for it. */
  progress?:
    ((step: 'move' | 'compare', done: number, total: number) => void | Promise<void>) | undefined;
  signal?: AbortSignal | undefined;
}

const perStep = 200;
/** Maximum payload bytes per commit. */
const maxBatchBytes = 16 * 2 ** 20;

/**
 * Copies everything from one store to an empty one, and compares both. If interrupted, it resumes.
 * Neither store may be in use; the comparison detects a source that changed meanwhile.
 */
export async function transfer(
  source: Source,
  target: Target,
  name: string,
  watch: TransferWatch = {},
): Promise<TransferTally> {
  const before = await target.mark();
  await refuseOther(target, before, name);
  const mark: Mark = before ?? { source: name, lastId: '', lastSeq: 0, finished: false };
  if (!mark.finished) {
    if (!before) await target.putQueues(await source.queues(), mark);
    await moveTasks(source, target, mark, watch);
    await moveAudit(source, target, mark);
  }
  const tally = await compare(source, target, watch).catch((error: unknown) => {
    throw before?.finished && error instanceof Difference ? livedOn() : error;
  });
  await target.finish({ ...mark, finished: true });
  return { ...tally, resumed: before !== undefined };
}

async function refuseOther(target: Target, mark: Mark | undefined, name: string): Promise<void> {
  if (mark && mark.source !== name) {
    throw new UsageError(
      `The target has an unfinished transfer of another store (${mark.source}). Resume that one, or empty the target.`,
    );
  }
  if (!mark && !(await target.isEmpty())) {
    throw new UsageError('The target is not empty. Choose an empty one.');
  }
}

async function moveTasks(
  source: Source,
  target: Target,
  mark: Mark,
  { progress, signal }: TransferWatch,
): Promise<void> {
  const total = await source.size();
  for (let moved = 0; ;) {
    signal?.throwIfAborted();
    const tasks = await source.tasks(mark.lastId, perStep);
    for (const part of partsBySize(tasks)) {
      mark.lastId = idOfMoved(part.at(-1)!);
      await target.putTasks(part, mark);
    }
    moved += tasks.length;
    await progress?.('move', moved, total);
    if (tasks.length < perStep) return;
  }
}

function partsBySize(tasks: readonly Moved[]): Moved[][] {
  const parts: Moved[][] = [];
  let bytes = Infinity;
  for (const moved of tasks) {
    const size = isMovedTask(moved) ? moved.payload.length : 0;
    if (bytes + size > maxBatchBytes) {
      parts.push([]);
      bytes = 0;
    }
    bytes += size;
    parts.at(-1)!.push(moved);
  }
  return parts;
}

async function moveAudit(source: Source, target: Target, mark: Mark): Promise<void> {
  for (;;) {
    const records = await source.audit(mark.lastSeq, perStep);
    if (records.length > 0) {
      mark.lastSeq = records.at(-1)!.seq;
      await target.putAudit(records, mark);
    }
    if (records.length < perStep) return;
  }
}

async function compare(
  source: Source,
  target: Target,
  { progress, signal }: TransferWatch,
): Promise<Omit<TransferTally, 'resumed'>> {
  const [queues, theirs] = [await source.queues(), await target.queues()];
  checkSame('queues', canonicalJson(plain(queues)), canonicalJson(plain(theirs)));
  const total = await source.size();
  let tasks = 0;
  for (let after = ''; ;) {
    signal?.throwIfAborted();
    const [here, there] = [await source.tasks(after, perStep), await target.tasks(after, perStep)];
    const longest = Math.max(here.length, there.length);
    for (let i = 0; i < longest; i++) {
      const [one, other] = [here[i], there[i]];
      const id = idOfMoved((one ?? other)!);
      checkSame(`task ${id}`, one && textOf(one), other && textOf(other));
      after = id;
    }
    tasks += here.length;
    await progress?.('compare', tasks, total);
    if (longest < perStep) break;
  }
  return { queues: queues.length, tasks, audit_records: await compareAudit(source, target) };
}

async function compareAudit(source: Source, target: Target): Promise<number> {
  let count = 0;
  for (let after = 0; ;) {
    const [here, there] = [await source.audit(after, perStep), await target.audit(after, perStep)];
    checkSame('audit log', canonicalJson(plain(here)), canonicalJson(plain(there)));
    count += here.length;
    if (here.length < perStep) return count;
    after = here.at(-1)!.seq;
  }
}

class Difference extends UsageError {}

/** Emptying it, as after an interrupted transfer, would lose what happened there since. */
function livedOn(): UsageError {
  return new UsageError(
    'The target is not empty: an earlier transfer finished, and it has changed since. ' +
      'Choose an empty one.',
  );
}

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}

function checkSame(what: string, one: string | undefined, other: string | undefined): void {
  if (one === other) return;
  throw new Difference(
    `The ${what} differs between source and target: the source changed during the transfer. ` +
      'Stop every server on it, empty the target and start again.',
  );
}
