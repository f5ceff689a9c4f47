import type { QueueSchema } from '@millrace/contract/queue';
import { ApiError } from './api-error.js';

type Task = QueueSchema<'SubmitTaskRequest'>;
type Result = QueueSchema<'SubmitResult'>;

interface Calls {
  submitTask(queue: string, task: Task): Promise<Result>;
  submitBatch(queue: string, tasks: Task[]): Promise<QueueSchema<'BatchResult'>>;
}

interface Entry {
  readonly task: Task;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

interface Line {
  waiting: Entry[];
  calls: number;
}

// Two: the server works on one batch while the next one is on its way.
const maxCalls = 2;
const maxItems = 500;
/** Far below the 16 MiB of a request; all but the payload is counted with a fixed size. */
const maxBytes = 4 * 1024 * 1024;
const itemBytes = 2_048;

/**
 * Submits that arrive while others are under way share the next request: 64 callers cost a server
 * a few requests, not 64. A submit that is alone is sent at once, and by itself.
 */
export class SharedSubmits {
  readonly #lines = new Map<string, Line>();

  constructor(private readonly calls: Calls) {}

  submit(queue: string, task: Task): Promise<Result> {
    return new Promise((resolve, reject) => {
      const line = this.#lines.get(queue) ?? { waiting: [], calls: 0 };
      this.#lines.set(queue, line);
      line.waiting.push({ task, resolve, reject });
      // Those that are submitted in the same turn share a request.
      if (line.waiting.length === 1) queueMicrotask(() => this.#send(queue, line));
    });
  }

  #send(queue: string, line: Line): void {
    while (line.calls < maxCalls && line.waiting.length > 0) {
      line.calls++;
      void this.#call(queue, takeBatch(line)).then(() => {
        line.calls--;
        if (line.calls === 0 && line.waiting.length === 0) this.#lines.delete(queue);
        else this.#send(queue, line);
      });
    }
  }

  /** Settles every entry; never rejects. */
  async #call(queue: string, batch: readonly Entry[]): Promise<void> {
    const [first] = batch;
    try {
      if (first && batch.length === 1) {
        first.resolve(await this.calls.submitTask(queue, first.task));
        return;
      }
      const results = await this.calls.submitBatch(
        queue,
        batch.map(({ task }) => task),
      );
      for (const [index, { resolve, reject }] of batch.entries()) {
        const result = results[index];
        if (result && 'envelope' in result) resolve(result.envelope);
        else reject(new ApiError(result?.status ?? 502, result?.error));
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}

function takeBatch(line: Line): Entry[] {
  let bytes = 0;
  const end = line.waiting.findIndex(({ task }, index) => {
    bytes += itemBytes + (task.payload?.length ?? 0);
    return index === maxItems || (index > 0 && bytes > maxBytes);
  });
  return line.waiting.splice(0, end === -1 ? line.waiting.length : end);
}
