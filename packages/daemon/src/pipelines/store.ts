import type { CommitTarget, Database } from '@millrace/engine';
import type { Pipeline, PipelineState } from '../core/pipeline.js';
import { deleteOldest, newestFirst } from '../storage/store.js';

/** The internal state of a pipeline, which callers do not see. */
interface Inner {
  force: boolean;
  runs: Record<string, number>;
}

/** Above this count, the oldest pipelines that have ended are deleted. */
const maxPipelines = 500;

/** What callers see; its changes are in the event stream. */
const visible = 'pipelines';
const internal = 'pipeline_states';

/** The pipelines on disk. Both collections are always written in one commit. */
export class PipelineStore {
  constructor(private readonly database: Database) {}

  async insert(state: PipelineState): Promise<void> {
    await this.database.transact((target) => {
      this.#write(target, state);
      const isOver = (status: string) => status === 'done' || status === 'canceled';
      deleteOldest(target, [visible, internal], maxPipelines, isOver);
    });
  }

  /** Runs the step on the newest state; its result is on disk when this resolves. */
  change<Result extends { state: PipelineState }>(
    id: string,
    step: (state: PipelineState, now: number) => Result,
  ): Promise<Result | undefined> {
    return this.database.transact((target) => {
      const before = this.#read(target, id);
      if (!before) return undefined;
      const result = step(before, target.now);
      if (result.state !== before) this.#write(target, result.state);
      return result;
    });
  }

  async find(id: string): Promise<PipelineState | undefined> {
    const pipeline = await this.database.collection<Pipeline>(visible).findByKey(id);
    const inner = await this.database.collection<Inner>(internal).findByKey(id);
    return pipeline && inner && { pipeline: pipeline.data, ...inner.data };
  }

  /** Newest first. */
  list(): Promise<Pipeline[]> {
    return newestFirst(this.database, visible);
  }

  #read(target: CommitTarget, id: string): PipelineState | undefined {
    const pipeline = target.collection<Pipeline>(visible).get(id);
    const inner = target.collection<Inner>(internal).get(id);
    return pipeline && inner && { pipeline, ...inner };
  }

  #write(target: CommitTarget, { pipeline, force, runs }: PipelineState): void {
    target.collection<Pipeline>(visible).put(pipeline.id, pipeline);
    target.collection<Inner>(internal).put(pipeline.id, { force, runs });
  }
}
