import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { memoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { expect, onTestFinished, vi } from 'vitest';
import { newBackend } from '../core/backend.js';
import type { Job, Pipeline, PipelineDefinition } from '../core/pipeline.js';
import { AgentFlows } from '../plans/engine.js';
import { memorySessions, type MemorySessions } from '../sessions/sessions.test-support.js';
import { openStore, type Store } from '../storage/store.js';
import { Pipelines } from './pipelines.js';

/** How long a test waits for what must come; far more than it takes. */
export const patience = { timeout: 60_000, interval: 5 };

export interface Rig {
  pipelines: Pipelines;
  sessions: MemorySessions;
  store: Store;
  /** Ends the daemon's part and opens it again on the same store and the same sessions. */
  restart(): Promise<void>;
  create(jobs: Record<string, Wanted>, rest?: Partial<PipelineDefinition>): Promise<Pipeline>;
  /** Waits until the pipeline reads like that: `running: a done, b running`. */
  expectSummary(id: string, summary: string): Promise<Pipeline>;
  /** Waits for the job's session. */
  sessionOf(id: string, jobId: string): Promise<string>;
  /** Lets the job's agent say something and end. */
  finish(id: string, jobId: string, said?: string, isGood?: boolean): Promise<void>;
}

type Wanted = Partial<PipelineDefinition['jobs'][number]>;

export async function useRig(): Promise<Rig> {
  const home = mkdtempSync(join(tmpdir(), 'mr-pipelines-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const world = { clock: systemClock, random: systemRandom, log: memoryLog() };
  const store = await openStore(join(home, 'store'), world);
  onTestFinished(() => store.close());
  const sessions = memorySessions();
  const known = ['claude', 'codex'].map((id) =>
    newBackend({ id, installed: true, binaryPath: `/bin/${id}` }, 0),
  );
  const settings = { internal_thinking_mode: 'local_only', allow_paid_autopilot: false } as const;
  const backends = { read: () => Promise.resolve({ backends: known, settings }) };
  const parts = { world, database: store.database, sessions, backends };
  let flows = new AgentFlows({ ...world, ...parts });
  const rig: Rig = {
    pipelines: await Pipelines.open({ ...parts, flows }),
    sessions,
    store,
    async restart() {
      await rig.pipelines.close();
      await flows.close();
      flows = new AgentFlows({ ...world, ...parts });
      rig.pipelines = await Pipelines.open({ ...parts, flows });
    },
    create: (jobs, rest = {}) =>
      rig.pipelines.create({
        name: 'test',
        start: true,
        jobs: Object.entries(jobs).map(([id, job]) => ({ id, prompt: `Do ${id}.`, ...job })),
        ...rest,
      }),
    async expectSummary(id, summary) {
      await vi.waitFor(
        async () => expect(summaryOf(await rig.pipelines.get(id))).toBe(summary),
        patience,
      );
      return rig.pipelines.get(id);
    },
    async sessionOf(id, jobId) {
      const job = () => rig.pipelines.get(id).then((found) => jobIn(found, jobId));
      await vi.waitFor(async () => expect((await job()).session_id).not.toBeNull(), patience);
      return (await job()).session_id!;
    },
    async finish(id, jobId, said = `${jobId} is done.`, isGood = true) {
      const session = await rig.sessionOf(id, jobId);
      sessions.say(session, said);
      sessions.set(session, { status: isGood ? 'done' : 'errored', exit_code: isGood ? 0 : 1 });
    },
  };
  onTestFinished(async () => {
    await rig.pipelines.close();
    await flows.close();
  });
  return rig;
}

export function summaryOf({ status, jobs }: Pipeline): string {
  return `${status}: ${jobs.map((job) => `${job.id} ${job.status}`).join(', ')}`;
}

export function jobIn({ jobs }: Pipeline, id: string): Job {
  return jobs.find((job) => job.id === id)!;
}
