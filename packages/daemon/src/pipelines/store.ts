import type { Database } from '@millrace/db';
import type { Pipeline, PipelineState } from '../core/pipeline.js';

/** What is kept of a pipeline beside what callers see. */
interface Inner {
  force: boolean;
  runs: Record<string, number>;
}

/** Ended pipelines are kept until there are more than this many. */
const mostKept = 500;

/**
 * The pipelines on disk: what callers see in `pipelines`, which is what the event stream tells,
 * and what is only for us in `pipeline_states`, both always written together.
 */
export class PipelineStore {
  private constructor(
    private readonly database: Database,
    private readonly seen: Kept,
    private readonly inner: Kept,
  ) {}

  static async open(database: Database): Promise<PipelineStore> {
    const { core } = database;
    const seen = await core.ensureCollection('pipelines');
    const inner = await core.ensureCollection('pipeline_states');
    return new PipelineStore(database, seen, inner);
  }

  async insert(state: PipelineState): Promise<void> {
    await this.database.transact((target) => {
      this.#write(target, state);
      this.#forgetOld(target);
    });
  }

  /** Runs the step on the newest state; what it returns is on disk when this resolves. */
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
    const seen = await this.database.collection<Pipeline>(this.seen.name).findByKey(id);
    const inner = await this.database.collection<Inner>(this.inner.name).findByKey(id);
    return seen && inner && { pipeline: seen.data, ...inner.data };
  }

  /** Newest first. */
  async list(): Promise<Pipeline[]> {
    const found: Pipeline[] = [];
    const all = this.database.collection<Pipeline>(this.seen.name).stream();
    for await (const { data } of all) found.push(data);
    return found.toSorted((a, b) => (a.id < b.id ? 1 : -1));
  }

  #read(target: Target, id: string): PipelineState | undefined {
    const seen = target.byKey(this.seen, id);
    const inner = target.byKey(this.inner, id);
    if (!seen || !inner) return undefined;
    return {
      pipeline: seen.data as unknown as Pipeline,
      ...(inner.data as unknown as Inner),
    };
  }

  #write(target: Target, { pipeline, force, runs }: PipelineState): void {
    put(target, this.seen, pipeline.id, pipeline);
    put(target, this.inner, pipeline.id, { force, runs: { ...runs } });
  }

  #forgetOld(target: Target): void {
    const rows = [...target.view.scan(this.seen.id, {}, () => true)];
    if (rows.length <= mostKept) return;
    const ended = rows
      .filter(({ data }) => ['done', 'canceled'].includes(String(data['status'])))
      .toSorted((a, b) => (a.key < b.key ? -1 : 1));
    for (const row of ended.slice(0, rows.length - mostKept)) {
      target.remove(this.seen, row);
      const inner = target.byKey(this.inner, row.key);
      if (inner) target.remove(this.inner, inner);
    }
  }
}

function put(target: Target, kept: Kept, key: string, data: Document): void {
  const there = target.byKey(kept, key);
  const id = there?.id ?? target.newId();
  target.store(kept, id, there, target.encode(data), { key, expiresAt: 0 });
}

type Target = Parameters<Parameters<Database['transact']>[0]>[0];
type Kept = Awaited<ReturnType<Database['core']['ensureCollection']>>;
type Document = Parameters<Target['encode']>[0];
