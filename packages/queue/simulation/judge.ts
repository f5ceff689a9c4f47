import type { Simulation } from '@millrace/kit/simulation';
import { auditFault, auditToWire, type WireAuditRecord } from '../src/core/audit.js';
import { isUncounted, type WholeTask } from '../src/core/task.js';
import type { Delivery } from '../src/delivery/index.js';
import type { TaskStore } from '../src/storage/port/task-store.js';
import type { Handlers } from './handlers.js';
import { manners } from './queues.js';
import type { Known, Witness } from './witness.js';

export interface Evidence {
  world: Simulation;
  disk: TaskStore;
  witness: Witness;
  handlers: Handlers;
  delivery: Delivery;
}

/** Checks the invariants at the end of a run. Throws at the first violation. */
export async function judge(evidence: Evidence): Promise<void> {
  const counts = new Map<string, { pending: number; inFlight: number; dead: number }>();
  for (const queue of manners.keys()) counts.set(queue, { pending: 0, inFlight: 0, dead: 0 });
  for (const known of evidence.witness.tasks.values()) {
    const task = await evidence.disk.getTask(known.id);
    if (!task) throw new Error(`${known.id} is lost`);
    if (task.status !== known.status) {
      throw new Error(`${known.id} is ${task.status} and should be ${known.status}`);
    }
    const count = counts.get(known.queue)!;
    if ('attempts' in task) {
      if (task.status === 'PENDING') count.pending++;
      if (task.status === 'IN_FLIGHT') count.inFlight++;
      if (task.status === 'DEAD') count.dead++;
      checkHistory(task);
      await checkEnd(task, evidence);
    } else if (task.status !== 'SUCCEEDED' && task.status !== 'DEAD') {
      throw new Error(`${known.id} was deleted while it was ${task.status}`);
    }
    checkWork(known, evidence.handlers);
  }
  for (const [queue, count] of counts) {
    const { pending, inFlight, dead } = await evidence.disk.counts(queue);
    const [reported, counted] = [{ pending, inFlight, dead }, count].map((each) =>
      JSON.stringify(each),
    );
    if (reported !== counted) throw new Error(`${queue} counts ${reported} and has ${counted}`);
  }
  await checkAudit(evidence);
}

/** Finished, or waiting for a known reason. */
async function checkEnd(task: WholeTask, { disk, delivery }: Evidence): Promise<void> {
  if (task.status === 'IN_FLIGHT') throw new Error(`${task.id} is still in flight`);
  if (task.status !== 'PENDING') return;
  const queue = await disk.getQueue(task.queue);
  const reason = await delivery.waitingFor(task, queue!);
  if (reason !== 'time' && reason !== 'paused') {
    throw new Error(`${task.id} of ${task.queue} still waits for ${reason}`);
  }
}

function checkHistory(task: WholeTask): void {
  const counted = task.attempts.filter((attempt) => !isUncounted(attempt.outcome));
  const isWhole = task.attempts.length < 50;
  const ofThisDrive = counted.filter((attempt) => attempt.redrive === task.redriveCount);
  if (isWhole && counted.length !== task.totalAttempts) {
    throw new Error(`${task.id} made ${task.totalAttempts} attempts, told are ${counted.length}`);
  }
  if (isWhole && ofThisDrive.length !== task.attempt) {
    throw new Error(`${task.id} is at attempt ${task.attempt}, told are ${ofThisDrive.length}`);
  }
  ofThisDrive.forEach((attempt, i) => {
    if (isWhole && attempt.attempt !== i + 1) {
      throw new Error(`${task.id} has ${attempt.attempt} where attempt ${i + 1} should be`);
    }
  });
  if (task.status === 'SUCCEEDED' && counted.at(-1)?.outcome !== 'SUCCEEDED') {
    throw new Error(`${task.id} succeeded without an attempt that did`);
  }
}

function checkWork(known: Known, handlers: Handlers): void {
  if (known.status === 'SUCCEEDED' && !handlers.done.has(known.id)) {
    throw new Error(`${known.id} succeeded and its handler never did the work`);
  }
}

async function checkAudit({ disk, witness }: Evidence): Promise<void> {
  const stored = (await disk.auditPage({ limit: 1_000_000 })).toReversed();
  witness.jobs.checkAudit(stored);
  const records = stored.map(auditToWire);
  let last: WireAuditRecord | undefined;
  for (const record of records) {
    const fault = auditFault(last, record);
    if (fault !== undefined) throw new Error(fault);
    last = record;
  }
  if (records.length === 0) throw new Error('nothing was audited');
}
