import type { Database } from '@millrace/engine';
import type { Log } from '@millrace/kit/log';
import type { Queue, TaskHandlers, Tasks } from '@millrace/worker';

const queueName = 'plans';
/** A handler waits for its agents, a large number runs at a time; the gates limit the agents. */
const concurrency = 1_000;
const leaseMs = 600_000;
/** A kill of the daemon ends an attempt, and many of them are no reason to give up. */
const maxAttempts = 1_000;

interface TaskOf<Payload> {
  input: Payload;
  output: Payload;
  returned: unknown;
  result: unknown;
}

// A type, for an interface would not be a record of tasks.
type FlowTasks = {
  'plan.task': TaskOf<{ plan: string; key: string }>;
  'plan.discard': TaskOf<{ branches: { repo: string; branch: string; tip: string }[] }>;
  'pipeline.job': TaskOf<{ pipeline: string; job: string; round: string }>;
};

const tasks: Tasks<FlowTasks> = {
  definitions: {
    'plan.task': { queue: queueName, maxAttempts },
    'plan.discard': { queue: queueName },
    'pipeline.job': { queue: queueName, maxAttempts },
  },
};

type Handlers = TaskHandlers<FlowTasks>;

export interface AgentFlowsParts {
  database: Database;
  log: Log;
  /** For tests: time passes by `advance` of the queue alone. */
  manualClock?: boolean;
}

/** The scheduler of agent work: a queue in this process, in which plans and pipelines are flows. */
export class AgentFlows {
  #opened: ReturnType<typeof openFlows> | undefined;
  #handlers: Partial<Handlers> = {};

  constructor(private readonly parts: AgentFlowsParts) {}

  /** Every kind of task must have its handler before the queue is opened. */
  handle(handlers: Partial<Handlers>): void {
    Object.assign(this.#handlers, handlers);
  }

  /** Opened on first use: most daemons run no plan, and the queue takes long to load. */
  async queue(): Promise<Queue<FlowTasks>> {
    return (await (this.#opened ??= openFlows(this.parts, this.#handlers as Handlers))).queue;
  }

  async close(): Promise<void> {
    const opened = await this.#opened?.catch(() => undefined);
    await opened?.worker.stop({ timeoutMs: 0 });
    await opened?.queue.close();
  }
}

async function openFlows({ database, log, manualClock }: AgentFlowsParts, handlers: Handlers) {
  const { openQueue } = await import('@millrace/queue');
  const clock = manualClock ? { clock: 'manual' as const } : {};
  const queue = await openQueue({ database, log, ...clock }, tasks);
  await queue.createQueue(queueName, { retry: { maxAttempts } });
  const onError = (error: unknown) => log.warn({ err: error }, 'plan worker failed');
  const options = { queue: queueName, concurrency, leaseMs, name: 'plans', onError };
  return { queue, worker: queue.createWorker(options, handlers) };
}
