import type { Clock } from '@millrace/kit/clock';
import type { Tracer } from '@millrace/kit/tracing';
import type {
  InsertResult,
  NewTask,
  Settlement,
  SettleResult,
} from '../storage/port/task-store.js';
import type { History } from './history.js';
import { endSpans, isRecorded, submitSpan, withTrace } from './task-spans.js';

export interface TaskObserverOptions {
  history: History;
  clock: Clock;
  /** Absent: no spans are recorded. */
  tracer?: Tracer | undefined;
}

/** Due times of delayed tasks that are remembered for their waiting time. */
const maxDelayed = 10_000;

/**
 * Counts what happens to tasks for the history of their queues and records their spans. Whoever
 * changes the status of tasks in the store calls it with the results.
 */
export class TaskObserver {
  readonly #delayed = new Map<string, number>();

  constructor(private readonly options: TaskObserverOptions) {}

  /** The tasks as they are stored: with tracing, each is part of a trace. */
  inTrace(tasks: readonly NewTask[]): readonly NewTask[] {
    return this.options.tracer ? tasks.map(withTrace) : tasks;
  }

  /** A client submitted these tasks at `now`. */
  submitted(tasks: readonly NewTask[], results: readonly InsertResult[], now: number): void {
    const { tracer, clock } = this.options;
    this.scheduled(tasks, results, now);
    if (!tracer) return;
    const endMs = clock.now();
    tasks.forEach((task, i) => {
      // A repeated submit stores nothing; the first one has the span.
      if (results[i]!.kind !== 'stored' || !isRecorded(task.headers)) return;
      const span = submitSpan(task, now, endMs);
      if (span) tracer.record(span);
    });
  }

  /** A schedule stored these tasks at `now`. */
  scheduled(tasks: readonly NewTask[], results: readonly InsertResult[], now: number): void {
    results.forEach(({ kind }, i) => {
      if (kind !== 'stored') return;
      const { id, queue, dueAt } = tasks[i]!;
      this.options.history.count(queue, 'submitted');
      if (dueAt > now) this.#rememberDelayed(id, dueAt);
    });
  }

  settled(settlements: readonly Settlement[], results: readonly SettleResult[]): void {
    const { tracer } = this.options;
    results.forEach((result, i) => {
      if (result.kind !== 'settled') return;
      const settlement = settlements[i]!;
      this.#count(settlement, result.task);
      if (!tracer || !isRecorded(result.task.headers)) return;
      for (const span of endSpans(settlement, result.task)) tracer.record(span);
    });
  }

  cancelled(queue: string, count: number): void {
    this.options.history.count(queue, 'dead', count);
    this.options.history.count(queue, 'cancelled', count);
  }

  /** A task expired before it was claimed. */
  expired(queue: string): void {
    this.options.history.count(queue, 'dead');
  }

  #count({ attempt, verdict }: Settlement, { id, queue, createdAt }: Settled): void {
    const { history } = this.options;
    if (verdict.kind === 'handed_back') return;
    history.ran(queue, attempt.durationMs);
    if (attempt.attempt === 1 && attempt.redrive === 0) {
      history.waited(queue, attempt.startedAt - (this.#delayed.get(id) ?? createdAt));
      this.#delayed.delete(id);
    }
    if (verdict.kind === 'succeeded') return history.count(queue, 'succeeded');
    history.count(queue, 'failed');
    if (verdict.kind === 'dead') history.count(queue, 'dead');
  }

  #rememberDelayed(id: string, dueAt: number): void {
    const delayed = this.#delayed;
    if (delayed.size >= maxDelayed) delayed.delete(delayed.keys().next().value!);
    delayed.set(id, dueAt);
  }
}

type Settled = Extract<SettleResult, { kind: 'settled' }>['task'];
