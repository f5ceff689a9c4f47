import type { QueueSchema } from '@millrace/contract/queue';
import { ValidationError } from './errors.js';
import { Listing } from './listing.js';
import { fromWire, toWire, type Camel } from './names.js';
import {
  decodePayload,
  encodeBase64,
  encodeJson,
  payloadBytes,
  payloadContentType,
} from './payload.js';
import { onlyQueue, queueOf, type SubmitOptions } from './submit.js';
import { checkPayload, type Tasks, type TaskTypes } from './tasks.js';
import type { CallOperation } from './transport.js';

interface PartOptions<Types extends TaskTypes> {
  tasks: Tasks<Types>;
  call: CallOperation;
}

/** What a schedule submits. */
export type ScheduledTask<Types extends TaskTypes> = {
  [Ref in keyof Types & string]: Pick<
    SubmitOptions,
    | 'priority'
    | 'groupKey'
    | 'headers'
    | 'maxAttempts'
    | 'backoff'
    | 'timeoutMs'
    | 'retainMs'
    | 'labels'
  > & { ref: Ref; payload: Types[Ref]['input'] };
}[keyof Types & string];

type WireSchedule = QueueSchema<'Schedule'>;

/** A schedule and its state. */
export type Schedule<Types extends TaskTypes> = Omit<Camel<WireSchedule>, 'task' | 'timezone'> & {
  timeZone: string;
  task: ScheduledTask<Types>;
};

export type ListedSchedule<Types extends TaskTypes> = Omit<Schedule<Types>, 'task'> & {
  task: Omit<ScheduledTask<Types>, 'payload'>;
};

export interface ScheduleInput<Types extends TaskTypes> {
  /** Where the tasks go, unless the definition of the task says so. */
  queue?: string;
  /** Either this or `everyMs`. */
  cron?: string;
  everyMs?: number;
  /** For `cron`, such as Europe/Berlin; UTC if absent. */
  timeZone?: string;
  task: ScheduledTask<Types>;
  overlap?: WireSchedule['overlap'];
  catchUp?: WireSchedule['catch_up'];
  jitterMs?: number;
  description?: string;
}

type InQueue = string | { queue?: string };

/** The schedules of a queue. A name that is in several queues needs its queue beside it. */
export class Schedules<Types extends TaskTypes> {
  constructor(
    private readonly options: PartOptions<Types> & { queueNames: () => Promise<string[]> },
  ) {}

  /** Creates the schedule, or replaces it. The payload must fit the schema of its task. */
  async put(name: string, input: ScheduleInput<Types>): Promise<Schedule<Types>> {
    const { tasks, call } = this.options;
    const { queue: given, task, ...schedule } = input;
    const { ref, payload, ...settings } = task;
    await checkPayload(tasks, ref, payload);
    const queue = queueOf(tasks, ref, given);
    const body = {
      ...toWire(schedule),
      task: {
        handler_ref: ref,
        ...(payload !== undefined && {
          payload: encodeBase64(encodeJson(payload)),
          payload_content_type: payloadContentType,
        }),
        ...toWire(settings),
      },
    } as QueueSchema<'ScheduleInput'>;
    return readSchedule(await call('putSchedule', { path: { queue, schedule: name }, body }));
  }

  async get(name: string, inQueue?: InQueue): Promise<Schedule<Types>> {
    return readSchedule(await this.options.call('getSchedule', await this.#at(name, inQueue)));
  }

  /** Of one queue, or of all, without payloads. */
  list(inQueue?: InQueue): Listing<ListedSchedule<Types>> {
    return new Listing(this.#list(nameIn(inQueue)));
  }

  async delete(name: string, inQueue?: InQueue): Promise<void> {
    await this.options.call('deleteSchedule', await this.#at(name, inQueue));
  }

  async pause(name: string, inQueue?: InQueue): Promise<Schedule<Types>> {
    return readSchedule(await this.options.call('pauseSchedule', await this.#at(name, inQueue)));
  }

  async resume(name: string, inQueue?: InQueue): Promise<Schedule<Types>> {
    return readSchedule(await this.options.call('resumeSchedule', await this.#at(name, inQueue)));
  }

  /** Submits its task now, beside its ordinary runs: `lastTaskId` is its id. */
  async runNow(name: string, inQueue?: InQueue): Promise<Schedule<Types>> {
    return readSchedule(await this.options.call('runSchedule', await this.#at(name, inQueue)));
  }

  async *#list(queue: string | undefined): AsyncGenerator<ListedSchedule<Types>, void, void> {
    const { call, queueNames } = this.options;
    for (const name of queue === undefined ? await queueNames() : [queue]) {
      let cursor = '';
      do {
        const query = cursor === '' ? {} : { cursor };
        const page = await call('listSchedules', { path: { queue: name }, query });
        for (const schedule of page.schedules)
          yield readSchedule(schedule) as ListedSchedule<Types>;
        cursor = page.next_cursor;
      } while (cursor !== '');
    }
  }

  async #at(name: string, inQueue: InQueue | undefined) {
    const given = nameIn(inQueue);
    if (given !== undefined) return { path: { queue: given, schedule: name } };
    const queues: string[] = [];
    for await (const schedule of this.list()) {
      if (schedule.name === name) queues.push(schedule.queue);
    }
    if (queues.length > 1) {
      throw new ValidationError(
        `Several queues have a schedule ${name}: name one of ${queues.join(', ')} beside it.`,
      );
    }
    // Without one, the call is refused with the code of a schedule that is not found.
    const queue = queues[0] ?? (await this.options.queueNames())[0] ?? 'default';
    return { path: { queue, schedule: name } };
  }
}

function nameIn(inQueue: InQueue | undefined): string | undefined {
  return typeof inQueue === 'object' ? inQueue.queue : inQueue;
}

function readSchedule<Types extends TaskTypes>(wire: WireSchedule): Schedule<Types> {
  const { task, ...schedule } = wire;
  const { handler_ref: ref, payload = '', payload_content_type: type = '', ...settings } = task;
  const value = decodePayload(payloadBytes(payload), type);
  return {
    ...fromWire(schedule),
    task: { ...fromWire(settings), ref, payload: value },
  } as unknown as Schedule<Types>;
}

export interface DeadFilter {
  errorType?: string;
  handlerRef?: string;
  httpStatus?: number;
  /** Died at this time or later. */
  from?: Date | string;
  /** Died before this time. */
  to?: Date | string;
}

/** Dead tasks of a queue: either by their ids, or all that match the filter. */
export interface DeadSelection {
  queue?: string;
  ids?: readonly string[];
  filter?: DeadFilter;
  /** Only count. */
  dryRun?: boolean;
}

export interface RedriveOptions {
  perSecond?: number;
  /** Drops this recorded step and those after it. */
  fromStep?: string;
  /** Drops all recorded steps. */
  resetSteps?: boolean;
  /** False: leaves the tasks that died of these as they are. */
  withDependents?: boolean;
}

export type DeadTask = Omit<Camel<QueueSchema<'Task'>>, 'payload'> & { payload: unknown };

const maxIds = 1_000;

/** The dead-letter queue. */
export class DeadLetters<Types extends TaskTypes> {
  constructor(private readonly options: PartOptions<Types>) {}

  /** Dead tasks with payload and attempts, newest death first. */
  list(options: DeadFilter & { queue?: string; limit?: number } = {}): Listing<DeadTask> {
    return new Listing(this.#list(options));
  }

  /** Dead tasks counted by error, handler and status. */
  async groups(inQueue?: InQueue): Promise<Camel<QueueSchema<'DlqGroup'>>[]> {
    const queue = onlyQueue(this.options.tasks, nameIn(inQueue));
    const { groups } = await this.options.call('listDlqGroups', { path: { queue } });
    return fromWire(groups);
  }

  /** Runs them again, at most `perSecond` a second: 500 if absent, 0 for all at once. */
  async redrive({
    perSecond,
    fromStep,
    resetSteps,
    withDependents,
    ...selection
  }: DeadSelection & RedriveOptions): Promise<{ count: number; dependents?: number }> {
    const flow = { fromStep, resetSteps, withDependents };
    return this.#act('redriveDlq', selection, { rate_per_second: perSecond, ...flow });
  }

  /** Deletes them. */
  async purge(selection: DeadSelection): Promise<{ count: number }> {
    return this.#act('purgeDlq', selection, {});
  }

  async *#list({
    queue,
    limit = Infinity,
    ...filter
  }: DeadFilter & { queue?: string; limit?: number }) {
    const { tasks, call } = this.options;
    const path = { queue: onlyQueue(tasks, queue) };
    let left = limit;
    let cursor = '';
    do {
      if (left <= 0) return;
      const query = { ...toWire(filter), ...(cursor && { cursor }) };
      const page = await call('listDlq', { path, query });
      for (const task of page.tasks.slice(0, left)) {
        const payload = payloadBytes(task.payload);
        yield { ...fromWire(task), payload: decodePayload(payload, task.payload_content_type) };
      }
      left -= page.tasks.length;
      cursor = page.next_cursor;
    } while (cursor !== '');
  }

  async #act(
    operation: 'redriveDlq' | 'purgeDlq',
    { queue, ids, filter, dryRun, ...unknown }: DeadSelection,
    settings: object,
  ): Promise<{ count: number; dependents?: number }> {
    const [name] = Object.keys(unknown);
    if (name !== undefined) throw new ValidationError(`${name} is not an option of this call.`);
    const { tasks, call } = this.options;
    const path = { queue: onlyQueue(tasks, queue) };
    const rest = toWire({ ...settings, dryRun });
    const selections: object[] = [];
    if (filter) selections.push({ filter: toWire(filter), ...(ids && { ids }) });
    else if (!ids) selections.push({});
    for (let at = 0; !filter && ids && at < Math.max(1, ids.length); at += maxIds) {
      selections.push({ ids: ids.slice(at, at + maxIds) });
    }
    let [count, dependents] = [0, 0];
    for (const selection of selections) {
      for (;;) {
        const result = await call(operation, { path, body: { ...selection, ...rest } as never });
        if ('count' in result) {
          count += result.count;
          dependents += result.dependents ?? 0;
        }
        if (!('complete' in result) || dryRun) break;
      }
    }
    return dependents > 0 ? { count, dependents } : { count };
  }
}
