import type { QueueSchema } from '@millrace/contract/queue';
import { encodeBase64 } from './payload.js';
import { submitRequest, type SubmitOptions } from './submit.js';
import type { Tasks, TaskTypes } from './tasks.js';
import type { CallOperation } from './transport.js';

export interface FlowTaskOptions extends Omit<SubmitOptions, 'dependsOn'> {
  /** Keys of tasks of this flow, or ids, that must end first. */
  after?: readonly (string | { key?: string; id?: string; on?: 'success' | 'end' })[];
}

interface WaitOptions {
  timeoutMs?: number;
  signal?: AbortSignal;
}

interface Added {
  key: string;
  ref: string;
  payload: unknown;
  options: FlowTaskOptions;
}

/** Tasks that are submitted together and depend on each other. */
export class Flow<Types extends TaskTypes> {
  readonly #added: Added[] = [];
  #result: QueueSchema<'FlowResult'> | undefined;

  constructor(
    private readonly tasks: Tasks<Types>,
    private readonly call: CallOperation,
    private readonly flowId: string | undefined,
    private readonly waitForAll: (
      ids: readonly string[],
      options: WaitOptions,
    ) => Promise<unknown[]>,
  ) {}

  /** Adds a task; its key is unique in the flow. */
  task<Ref extends keyof Types & string>(
    key: string,
    ref: Ref,
    payload: Types[Ref]['input'],
    options: FlowTaskOptions = {},
  ): this {
    this.#added.push({ key, ref, payload, options });
    return this;
  }

  /** The task that was added last runs after these. */
  after(...keys: NonNullable<FlowTaskOptions['after']>): this {
    const last = this.#added.at(-1);
    if (!last) throw new TypeError('Add a task before you say what it runs after.');
    last.options = { ...last.options, after: [...(last.options.after ?? []), ...keys] };
    return this;
  }

  /** Stores all tasks, or none. Returns the ids by key. */
  async submit(): Promise<{ flowId: string; ids: Readonly<Record<string, string>> }> {
    const tasks = await Promise.all(this.#added.map((added) => this.#wireTask(added)));
    const body = { tasks, ...(this.flowId !== undefined && { flow_id: this.flowId }) };
    this.#result = await this.call('submitFlow', { body });
    const ids = this.#result.tasks.map(({ key, id }) => [key, id] as const);
    return { flowId: this.#result.flow_id, ids: Object.fromEntries(ids) };
  }

  /** The results by key when all tasks have succeeded; throws a TaskFailed if one dies. */
  async wait(options: WaitOptions = {}): Promise<Readonly<Record<string, unknown>>> {
    if (!this.#result) await this.submit();
    const { tasks } = this.#result!;
    const results = await this.waitForAll(
      tasks.map(({ id }) => id),
      options,
    );
    return Object.fromEntries(tasks.map(({ key }, i) => [key, results[i]]));
  }

  async #wireTask({ key, ref, payload, options: { after, ...options } }: Added) {
    const { queue, request } = await submitRequest(this.tasks, { ref, payload, options });
    const { payload: bytes, ...task } = request;
    return {
      key,
      queue,
      ...task,
      ...(bytes && { payload: encodeBase64(bytes) }),
      ...(after && { depends_on: [...after] }),
    };
  }
}
