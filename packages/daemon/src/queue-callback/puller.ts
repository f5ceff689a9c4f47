import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { backoffMs } from '@millrace/kit/backoff';
import { messageOf, Refusal } from '@millrace/kit/errors';
import type { World } from '@millrace/kit/world';
import { payloadBytes, type ClaimedTask, type QueueTransport } from '@millrace/worker';
import { backoff } from './outbox.js';
import {
  handlersOf,
  labelsHeader,
  missingLabels,
  parseLabels,
  type Labels,
  type CallbackHeaders,
  type Delivery,
} from './received-task.js';
import type { QueueClient } from './queue-client.js';
import type { QueueTasks } from './queue-tasks.js';
import type { Report } from './report.js';

export interface PullerParts {
  world: World;
  tasks: Pick<QueueTasks, 'accept' | 'openCount' | 'onEnd'>;
  transport: Pick<QueueTransport, 'claim'>;
  client: Pick<QueueClient, 'settle'>;
  queue: string;
  /** The name in the list of workers. */
  worker: string;
  labels: Labels;
  maxAgents: number;
  leaseMs: number;
}

/** How long the queue holds a claim open when no task is due. */
const waitMs = 30_000;
const soonMs = 1_000;
const maxPerClaim = 100;
/** A task for other machines is offered again after this time. */
const handBackMs = 15_000;

/** Refusals of a spawn that another machine may not share. */
const otherMachineMayRun = new Set(['BACKEND_NOT_FOUND', 'BACKEND_NOT_ELIGIBLE']);

/**
 * Claims tasks of a pull queue and starts an agent for each. The lease, the report and a restart of
 * the daemon are handled as for tasks that the queue delivers.
 */
export class Puller {
  readonly #stop = new AbortController();
  readonly #stopListening: () => void;
  #onSlot: (() => void) | undefined;
  #loop: Promise<void> = Promise.resolve();

  constructor(private readonly parts: PullerParts) {
    this.#stopListening = parts.tasks.onEnd(() => this.#onSlot?.());
  }

  start(): void {
    const { world, queue, worker, labels, maxAgents } = this.parts;
    world.log.info({ queue, worker, labels, max_agents: maxAgents }, 'pulling tasks');
    this.#loop = this.#run();
  }

  /** Claims nothing more. Tasks in progress go on. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#stopListening();
    this.#onSlot?.();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    let failures = 0;
    while (!signal.aborted) {
      const free = this.parts.maxAgents - this.parts.tasks.openCount;
      if (free <= 0) {
        await new Promise<void>((onSlot) => (this.#onSlot = onSlot));
        continue;
      }
      const { clock } = this.parts.world;
      const startedAt = clock.monotonic();
      try {
        const claimed = await this.#claim(Math.min(free, maxPerClaim));
        await Promise.all(claimed.map((task) => this.#take(task)));
        failures = 0;
        // A server that shuts down answers at once.
        const isCutShort = claimed.length === 0 && clock.monotonic() - startedAt < soonMs;
        if (isCutShort) await this.#sleep(soonMs);
      } catch (error) {
        if (signal.aborted) return;
        await this.#pause(error, failures++);
      }
    }
  }

  #claim(limit: number): Promise<ClaimedTask[]> {
    const { transport, queue, worker, labels, leaseMs } = this.parts;
    const request = {
      worker,
      limit,
      wait_ms: waitMs,
      lease_ms: leaseMs,
      handlers: handlersOf(labels),
    };
    return transport.claim(queue, request, this.#stop.signal);
  }

  async #pause(error: unknown, failures: number): Promise<void> {
    const { log, random } = this.parts.world;
    const delayMs = backoffMs(backoff, failures + 1, random.next());
    // Warn at the first failure, then at powers of two, to limit repeated warnings.
    const level = (failures & (failures - 1)) === 0 ? 'warn' : 'debug';
    const reason = messageOf(error);
    log[level]({ reason, wait_ms: Math.round(delayMs) }, 'failed to claim tasks');
    await this.#sleep(delayMs);
  }

  /** Ends early when a task ends or the daemon stops. */
  #sleep(delayMs: number): Promise<void> {
    return new Promise((over) => {
      const timer = this.parts.world.clock.after(delayMs, over);
      this.#onSlot = () => {
        timer.cancel();
        over();
      };
    });
  }

  /** Starts the agent of a task, or reports why this daemon does not. */
  async #take(claimed: ClaimedTask): Promise<void> {
    const { tasks, client, world } = this.parts;
    const fields = { task: claimed.id, queue: claimed.queue };
    try {
      const report = this.#refusal(claimed) ?? (await accepted(tasks, claimed));
      if (!report) return;
      world.log.info({ ...fields, reason: report.message }, 'task handed back');
      const claim = { taskId: claimed.id, leaseToken: claimed.lease_token };
      const answer = await client.settle(claim, report, this.#stop.signal);
      // Without an answer the lease runs out, and the queue offers the task again.
      if (answer.kind !== 'ok') world.log.warn({ ...fields, reason: answer.why }, 'report failed');
    } catch (error) {
      world.log.error({ ...fields, err: error }, 'failed to start an agent for a task');
    }
  }

  /** Undefined when the machine has the labels that the task requires. */
  #refusal({ headers }: ClaimedTask): Failure | undefined {
    const [, text = ''] =
      Object.entries(headers).find(([name]) => name.toLowerCase() === labelsHeader) ?? [];
    const required = parseLabels(text);
    if (!required) {
      const message = `${labelsHeader} must be a list such as os=linux,gpu=true, not "${text}"`;
      return { kind: 'fail', error_type: 'INVALID_REQUEST', message, retry: false };
    }
    const missing = missingLabels(required, this.parts.labels);
    if (missing === '') return undefined;
    return {
      kind: 'fail',
      error_type: 'LABELS_MISSING',
      message: `${this.parts.worker} does not have ${missing}`,
      retry: true,
      defer: true,
      retry_after_ms: handBackMs,
    };
  }
}

type Failure = Report & { kind: 'fail' };

async function accepted(
  tasks: Pick<QueueTasks, 'accept'>,
  claimed: ClaimedTask,
): Promise<Failure | undefined> {
  try {
    await tasks.accept(deliveryOf(claimed));
    return undefined;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { code, detail, extra } = error;
    const isBudget = code === 'BUDGET_EXCEEDED';
    return {
      kind: 'fail',
      error_type: code,
      message: detail,
      retry: isBudget || otherMachineMayRun.has(code),
      ...(isBudget && { defer: true }),
      ...(extra.retryAfterMs !== undefined && { retry_after_ms: Math.round(extra.retryAfterMs) }),
    };
  }
}

/** The task as the queue would deliver it. */
function deliveryOf(claimed: ClaimedTask): Delivery {
  const headers: CallbackHeaders = {
    'webhook-id': claimed.id,
    'X-Queue-Task-Id': claimed.id,
    'X-Queue-Name': claimed.queue,
    'X-Queue-Lease-Token': claimed.lease_token,
    'X-Queue-Attempt': String(claimed.attempt),
    'X-Queue-Redrive-Count': String(claimed.redrive_count),
  };
  const body = payloadBytes(claimed.payload);
  return {
    headers,
    contentType: claimed.payload_content_type ?? undefined,
    body: body.length === 0 ? undefined : body,
  };
}

/** Stable for a data directory, so that a restarted daemon is the same worker. */
export function workerName(dataDir: string): string {
  const mark = createHash('sha256').update(dataDir).digest('hex').slice(0, 6);
  return `${hostname()}-${mark}`;
}
