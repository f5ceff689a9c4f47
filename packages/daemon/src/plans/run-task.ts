import { createHash } from 'node:crypto';
import type { HandlerCall } from '@millrace/worker';
import type { Questions } from '../questions/questions.js';
import { planRef } from '../questions/question.js';
import type { Session } from '../sessions/port.js';
import { slugOf } from '../sessions/worktrees.js';
import { AgentSteps, TaskFailure, type AgentEnd, type AgentStepsParts } from './agent-steps.js';
import {
  commitRest,
  deleteBranch,
  diffSize,
  diffText,
  dropWorktree,
  mergeBranch,
  verify,
  type BranchWorkParts,
} from './branch-work.js';
import {
  feedbackOf,
  namedBackend,
  raceOf,
  type PlanCheck,
  type PlanDefinition,
  type RaceEntry,
  type StoredPlan,
  type StoredTask,
  type TaskDefinition,
} from './definition.js';
import { awaitFeedback, publish, type FeedbackParts } from './feedback.js';
import {
  feedbackPrompt,
  findingsPrompt,
  isReviewDone,
  judgePrompt,
  pickIn,
  reviewPrompt,
  taskPrompt,
} from './prompts.js';
import { taskOf } from './store.js';

export interface RunTaskParts extends AgentStepsParts, BranchWorkParts, FeedbackParts {
  questions: Pick<Questions, 'add' | 'ended' | 'close' | 'get'>;
  exactUsdOf: (session: Session) => Promise<number | null>;
  /** Deletes branches after their time. */
  discardLater: (branches: readonly DroppedBranch[], name: string) => Promise<void>;
}

export interface DroppedBranch {
  repo: string;
  branch: string;
  tip: string;
}

/** The work of a task so far. */
interface Work {
  sessionId: string;
  output: string;
  check: PlanCheck | null;
}

type Call = Pick<HandlerCall<unknown>, 'step' | 'signal'>;

/**
 * One task of a plan, from its start to its end. What has happened is recorded as steps, so this
 * runs again from the top after a restart of the daemon, and goes on where it was.
 */
export class TaskRun {
  readonly #agents: AgentSteps;
  readonly #task: TaskDefinition;
  readonly #seen: StoredTask;

  constructor(
    private readonly parts: RunTaskParts,
    private readonly call: Call,
    private readonly plan: StoredPlan,
    private readonly definition: PlanDefinition,
    private readonly key: string,
  ) {
    this.#task = definition.tasks.find((task) => task.key === key)!;
    this.#seen = taskOf(plan, key);
    const place = { plan: plan.id, key, agent: plan.created_by };
    this.#agents = new AgentSteps(parts, place, call.step);
  }

  async run(): Promise<void> {
    if (this.#task.assignee === 'person') return this.#leaveToPerson();
    await this.#agents.run('begin', () => this.#show({ status: 'running' }));
    const { race, review, feedback } = this.#task;
    let work = race ? await this.#race() : await this.#single();
    if (review) work = await this.#review(work, review);
    if (this.#task.verify !== undefined && work.check === null) {
      work = await this.#verified('verify', work);
    }
    if (work.check && !work.check.passed) throw new TaskFailure(failedCheck(work.check));
    if (feedback) work = await this.#feedback(work);
    const merged = await this.#merge(work);
    await this.#agents.run('done', () =>
      this.#show({ status: 'done', result: work.output, waiting_for: null, merged }),
    );
  }

  get #base(): string | undefined {
    return this.definition.base;
  }

  get #repo(): string | undefined {
    return this.#task.repo ?? this.definition.repo;
  }

  #show(change: Partial<StoredTask>): Promise<null> {
    return this.#change(() => change);
  }

  async #change(change: (task: StoredTask) => Partial<StoredTask>): Promise<null> {
    await this.parts.store.changeTask(this.plan.id, this.key, change);
    return null;
  }

  /** Its end is in the store already when the signal comes. */
  async #leaveToPerson(): Promise<void> {
    await this.#agents.run('ready', () =>
      this.#change(({ status }) => (status === 'pending' ? { status: 'ready' } : {})),
    );
    const end = await this.call.step.signal<{ failed: boolean; result: string }>('complete');
    if (end?.failed) throw new TaskFailure(end.result);
  }

  /** What every session of this task is started with. */
  #place(suffix = ''): { repo?: string; branch?: string; base?: string; budget_usd?: number } {
    const { budget_usd } = this.#task;
    const repo = this.#repo;
    return {
      ...(repo !== undefined && { repo, branch: branchOf(this.plan, this.key, suffix) }),
      ...(repo !== undefined && this.#base !== undefined && { base: this.#base }),
      ...(budget_usd !== undefined && { budget_usd }),
    };
  }

  #name(what = ''): string {
    return `${this.plan.title}: ${this.key}${what}`;
  }

  async #single(): Promise<Work> {
    const end = await this.#agents.agent('work', {
      prompt: taskPrompt(this.plan, this.#seen),
      backend: namedBackend(this.#task.backend),
      name: this.#name(),
      ...this.#place(),
    });
    return this.#taken('work', end);
  }

  /** Commits what an agent has left, and shows its branch. */
  async #taken(name: string, { sessionId, output }: AgentEnd): Promise<Work> {
    await this.#agents.run(`${name}:commit`, async () => {
      const session = await this.#agents.session(sessionId);
      await commitRest(this.parts, session, this.#seen.title);
      return this.#show({ branch: session.worktree === null ? null : session.branch });
    });
    return { sessionId, output, check: null };
  }

  async #verified(name: string, work: Work): Promise<Work> {
    const { verify: command } = this.#task;
    if (command === undefined) return work;
    const check = await this.#agents.run(name, async ({ signal }) => {
      const result = await verify(
        this.parts,
        await this.#agents.session(work.sessionId),
        command,
        signal,
      );
      await this.#show({ verify: result });
      return result;
    });
    return { ...work, check };
  }

  async #race(): Promise<Work> {
    const { backends, judge } = raceOf(this.#task.race)!;
    await this.#agents.run('race:begin', () => this.#show({ race: backends.map(newEntry) }));
    const entries = await Promise.all(backends.map((backend, at) => this.#contender(backend, at)));
    const able = entries.filter(({ entry }) => entry.status === 'done');
    if (able.length === 0) {
      throw new TaskFailure(`No agent of the race ended well. ${entries[0]!.output}`);
    }
    const judged = judge === undefined ? undefined : await this.#judge(judge, able);
    const picked = judged ?? (await this.#picked());
    const winner = able.find(({ entry }) => entry.session_id === picked)!;
    const { branch, verify: check } = winner.entry;
    await this.#agents.run('race:taken', () =>
      this.#change(({ race }) => ({
        status: 'running',
        waiting_for: null,
        branch,
        verify: check,
        race: race.map((each) => ({ ...each, picked: each.session_id === picked })),
      })),
    );
    await this.#discard(entries.filter(({ entry }) => entry.session_id !== picked));
    return { sessionId: picked, output: winner.output, check };
  }

  /** One session of a race, with its checks. A failure leaves the others in the race. */
  async #contender(backend: string, at: number): Promise<{ entry: RaceEntry; output: string }> {
    const name = `race-${at + 1}`;
    let id: string | null = null;
    let end: AgentEnd | undefined;
    let trouble = '';
    try {
      id = await this.#agents.start(name, {
        prompt: taskPrompt(this.plan, this.#seen),
        backend: namedBackend(backend),
        name: this.#name(` (${backend})`),
        ...this.#place(`-${at + 1}-${backend}`),
      });
      end = await this.#agents.ended(name, id);
    } catch (error) {
      if (this.call.signal.aborted || !(error instanceof Error)) throw error;
      trouble = error.message;
    }
    const entry = await this.#agents.run(`${name}:check`, async ({ signal }) => {
      const known = {
        ...newEntry(backend),
        session_id: id,
        status: 'failed',
        error: trouble,
      } as const;
      const made = end ? await this.#entryOf(end.sessionId, signal) : known;
      await this.#change(({ race }) => ({ race: race.with(at, made) }));
      return made;
    });
    return { entry, output: end?.output ?? trouble };
  }

  async #entryOf(id: string, signal: AbortSignal): Promise<RaceEntry> {
    const session = await this.#agents.session(id);
    await commitRest(this.parts, session, this.#seen.title);
    const { verify: command } = this.#task;
    const began = Date.parse(session.created_at);
    return {
      session_id: session.id,
      backend: session.backend,
      branch: session.branch,
      status: 'done',
      verify: command === undefined ? null : await verify(this.parts, session, command, signal),
      diff: await diffSize(this.parts, session, this.#base),
      exact_usd: await this.parts.exactUsdOf(session),
      duration_ms: Math.max(0, Date.parse(session.status_since) - began),
      picked: false,
      error: null,
    };
  }

  /** Undefined when the judge names no candidate: then a person picks. */
  async #judge(
    backend: string,
    able: readonly { entry: RaceEntry; output: string }[],
  ): Promise<string | undefined> {
    const prompt = await this.#agents.run('judge:prompt', async () => {
      const entries = able.map(async ({ entry, output }) => {
        const session = await this.#agents.session(entry.session_id!);
        return { ...entry, output, changes: await diffText(this.parts, session, this.#base) };
      });
      return judgePrompt(this.#seen, await Promise.all(entries));
    });
    try {
      const from = able[0]!.entry.branch!;
      const said = await this.#opinion('judge', { prompt, backend, from });
      return able[(pickIn(said) ?? 0) - 1]?.entry.session_id ?? undefined;
    } catch (error) {
      if (this.call.signal.aborted || !(error instanceof Error)) throw error;
      return undefined;
    }
  }

  /** The last message of an agent that reads a branch, in a worktree that goes with it. */
  async #opinion(
    name: string,
    { prompt, backend, from }: { prompt: string; backend: string; from: string },
  ): Promise<string> {
    const { output, sessionId } = await this.#agents.agent(name, {
      ...this.#place(`-${name}`),
      base: from,
      prompt,
      backend: namedBackend(backend),
      name: this.#name(` (${name})`),
    });
    await this.#agents.run(`${name}:drop`, async ({ signal }) => {
      const session = await this.parts.sessions.find(sessionId);
      const dropped = session && (await dropWorktree(this.parts, session, signal));
      if (dropped) await deleteBranch(this.parts.git, dropped);
      return null;
    });
    return output;
  }

  async #picked(): Promise<string> {
    await this.#agents.run('race:wait', () =>
      this.#show({ status: 'waiting', waiting_for: 'pick' }),
    );
    const pick = await this.call.step.signal<{ session_id: string }>('pick');
    return pick!.session_id;
  }

  /** The work of the others is in their branches, which stay for some time. */
  async #discard(others: readonly { entry: RaceEntry }[]): Promise<void> {
    await this.#agents.run('race:discard', async ({ signal }) => {
      const dropped: DroppedBranch[] = [];
      for (const { entry } of others) {
        const session = await this.parts.sessions.find(entry.session_id ?? '');
        const branch = session && (await dropWorktree(this.parts, session, signal));
        if (branch) dropped.push(branch);
      }
      if (dropped.length > 0) {
        await this.parts.discardLater(dropped, `${this.plan.id}:${this.key}`);
      }
      return null;
    });
  }

  /** The findings of each round go back to the author. */
  async #review(
    first: Work,
    { by, rounds = 3 }: NonNullable<TaskDefinition['review']>,
  ): Promise<Work> {
    let work = first;
    for (let round = 1; round <= rounds; round++) {
      const name = `review-${round}`;
      const author = await this.#agents.session(work.sessionId);
      const prompt = await this.#agents.run(`${name}:prompt`, async () => {
        const diff = await diffText(this.parts, author, this.#base);
        const base = this.#base ?? author.base_branch ?? 'its base';
        return reviewPrompt(this.#seen, { diff, base, output: work.output });
      });
      const from = author.branch!;
      const findings = await this.#opinion(name, { prompt, backend: by, from });
      if (isReviewDone(findings)) break;
      const end = await this.#agents.again(`fix-${round}`, author.id, findingsPrompt(findings));
      work = await this.#taken(`fix-${round}`, end);
    }
    return work;
  }

  /** Wakes the session with what CI and reviewers say, up to the given number of rounds. */
  async #feedback(first: Work): Promise<Work> {
    const { from, rounds } = feedbackOf(this.#task.feedback);
    let work = first;
    let seen: string[] = [];
    for (let round = 1; ; round++) {
      const name = `feedback-${round}`;
      await this.#agents.run(`${name}:publish`, async () => {
        await publish(this.parts, await this.#agents.session(work.sessionId), this.#seen.title);
        return this.#show({ status: 'waiting', waiting_for: 'feedback' });
      });
      const end = await this.#agents.run(name, async ({ signal }) => {
        const session = await this.#agents.session(work.sessionId);
        const said = await awaitFeedback(this.parts, session, { from, seen, signal });
        await this.#show({ status: 'running', waiting_for: null });
        return said;
      });
      if (end.texts.length === 0 || round > rounds) {
        if (!end.isRed || (this.#task.merge ?? 'never') === 'never') return work;
        throw new TaskFailure(
          `CI failed on its branch, so it was not merged. ${end.texts.join(' ')}`,
        );
      }
      ({ seen } = end);
      const text = feedbackPrompt(end.texts);
      const woken = await this.#agents.again(`${name}:fix`, work.sessionId, text);
      work = await this.#verified(`${name}:verify`, await this.#taken(`${name}:fix`, woken));
      if (work.check && !work.check.passed) throw new TaskFailure(failedCheck(work.check));
    }
  }

  /** The merge gate: a yes where one is wanted, then one branch at a time. */
  async #merge({ sessionId }: Work): Promise<boolean> {
    const { merge = 'never', verify: command } = this.#task;
    if (merge === 'never') return false;
    if (merge === 'ask' && !(await this.#isAllowed(sessionId))) return false;
    await this.#agents.run('merge', async ({ signal }) => {
      const session = await this.#agents.session(sessionId);
      const { title } = this.#seen;
      const request = { session, title, base: this.#base, command, signal };
      const check = await mergeBranch(this.parts, request);
      return this.#show({ merged: true, ...(check && { verify: check }) });
    });
    return true;
  }

  async #isAllowed(sessionId: string): Promise<boolean> {
    const { questions } = this.parts;
    const id = await this.#agents.run('merge:question', async () => {
      const session = await this.#agents.session(sessionId);
      const base = this.#base ?? session.base_branch ?? 'its base';
      const size = await diffSize(this.parts, session, this.#base);
      const changes = size ? `${size.files} files, +${size.additions} -${size.deletions}` : '';
      const { question } = await questions.add(sessionId, {
        kind: 'merge',
        title: `Merge ${session.branch} into ${base}?`,
        body: [`${this.plan.title}: ${this.#seen.title}`, changes].filter(Boolean).join('\n'),
        tool: null,
        options: [
          { id: '1', label: 'Yes, merge it', kind: 'allow_once' },
          { id: '2', label: 'No, leave the branch', kind: 'reject' },
        ],
        ref: planRef(`${this.plan.id}:${this.key}`),
      });
      await this.#show({ status: 'waiting', waiting_for: 'merge' });
      return question.id;
    });
    const answer = await this.#agents.run('merge:answer', async ({ signal }) => {
      for (;;) {
        const question = await questions.ended(id, longMs, signal);
        signal.throwIfAborted();
        if (question.status === 'open') continue;
        if (question.status === 'closed') {
          throw new TaskFailure('Its session was deleted before anybody allowed the merge.');
        }
        await this.#show({ status: 'running', waiting_for: null });
        return question.answer;
      }
    });
    return answer === '1';
  }
}

const maxBranchLength = 60;

/** Another one for each session of a task, also where title and key are too long for a branch. */
function branchOf({ id, title }: StoredPlan, key: string, suffix: string): string {
  const tail = `-${id.slice(-6).toLowerCase()}`;
  const name = slugOf(title).slice(0, 30);
  const whole = `${name}-${key}${suffix}`;
  if (slugOf(key) === key && whole.length <= maxBranchLength) return `${slugOf(whole)}${tail}`;
  const hash = createHash('sha256').update(key).digest('hex').slice(0, 8);
  const end = `-${hash}${suffix && `-${slugOf(suffix)}`}${tail}`;
  const room = Math.max(20, maxBranchLength - end.length);
  const start = `${name.slice(0, room / 2)}-${slugOf(key)}`.slice(0, room);
  return `${slugOf(start)}${end}`;
}

function newEntry(backend: string): RaceEntry {
  const none = { session_id: null, branch: null, verify: null, diff: null, error: null };
  return { ...none, backend, status: 'running', exact_usd: null, duration_ms: null, picked: false };
}

/** Below the limit of timers. */
const longMs = 2_000_000_000;

function failedCheck({ command, exit_code: code, output }: PlanCheck): string {
  const how = code === null ? 'did not end by itself' : `ended with code ${code}`;
  return `The checks failed: \`${command}\` ${how}.\n${output}`;
}
