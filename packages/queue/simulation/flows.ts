import type { Outbound, OutboundOutcome, OutboundRequest } from '@millrace/kit/outbound';
import type { Simulation } from '@millrace/kit/simulation';
import type { Dependency } from '../src/core/flow.js';
import { answer, sampleConfig, sampleTask } from '../src/delivery/delivery.test-support.js';
import { sendSignal } from '../src/storage/port/flow-run.js';
import { readRuns, type TaskRun } from '../src/storage/port/flow-runs.js';
import type { TaskStore } from '../src/storage/port/task-store.js';
import { MemoryStore } from '../test/support/memory-store/index.js';
import { Servers } from './servers.js';

/** What a run came to, for the report. */
export interface FlowTally {
  tasks: number;
  dependents: number;
  failed_dependents: number;
  steps: number;
  suspensions: number;
  signals: number;
  crashes: number;
}

/** What a handler does, in this order. Each stage ends with a recorded step. */
type Stage =
  | { kind: 'step' }
  | { kind: 'sleep'; ms: number }
  | { kind: 'signal' }
  | { kind: 'tasks'; ids: readonly string[]; mode: 'any' | 'all' };

interface Plan {
  id: string;
  stages: readonly Stage[];
  dependsOn: readonly Dependency[];
}

const queue = 'flows';
const suspendType = { 'content-type': 'application/vnd.millrace.suspend+json' };
const roundMs = 10_000;
const maxRounds = 180;

/** A minute of flows under faults: no step twice, no wake-up or signal lost, no dependent early. */
export async function runFlowScenario(
  world: Simulation,
  disk: TaskStore = new MemoryStore(),
): Promise<FlowTally> {
  const flows = new Flows(world, disk);
  const servers = new Servers(world, disk, flows, () => flows);
  await world.complete(flows.configure());
  const names = world.chance(0.5) ? ['queue-1'] : ['queue-1', 'queue-2'];
  for (const name of names) servers.boot(name);
  const act = (action: () => Promise<void>) => () =>
    void action().catch((error: unknown) => world.fail(error));
  const aServer = () => names[world.between([0, names.length - 1])]!;
  const trouble = [
    world.disturb(
      [200, 5_000],
      act(() => flows.submit()),
    ),
    world.disturb(
      [200, 3_000],
      act(() => flows.signal()),
    ),
    world.disturb([4_000, 30_000], () => servers.crash(aServer())),
    world.disturb([10_000, 60_000], () => servers.stop(aServer())),
    world.disturb([1_000, 10_000], () => servers.bootFallen(names)),
  ];
  await world.runFor(world.between([15_000, 60_000]));
  for (const each of trouble) each.stop();
  world.stopFaults();
  servers.bootFallen(names);
  await world.complete(flows.heal());
  let waiting = await world.complete(flows.waiting());
  for (let round = 0; waiting.length > 0 && round < maxRounds; round++) {
    await world.runFor(roundMs);
    waiting = await world.complete(flows.waiting());
  }
  if (waiting.length > 0) throw new Error(`a wake-up is lost: ${waiting.join(', ')}`);
  await world.complete(flows.judge());
  await world.runUntil(() => servers.all().length === names.length, 60_000);
  await world.complete(servers.shutDown(1_000));
  return { ...flows.tally, crashes: servers.crashes };
}

/** Programs of flows, the handlers that run them, and what must hold of their records. */
class Flows implements Outbound {
  readonly tally = {
    tasks: 0,
    dependents: 0,
    failed_dependents: 0,
    steps: 0,
    suspensions: 0,
    signals: 0,
  };
  readonly #plans = new Map<string, Plan>();
  readonly #recorded = new Set<string>();
  /** Signals that the store has acknowledged, by task. */
  readonly #sent = new Map<string, Set<string>>();
  /** Signals that a step consumes, or tried to. */
  readonly #taken = new Set<string>();
  readonly #consumed = new Set<string>();
  #isHealed = false;

  constructor(
    private readonly world: Simulation,
    private readonly disk: TaskStore,
  ) {}

  /** The disk as one server sees it. */
  view(): TaskStore {
    const { disk } = this;
    const claimDue: TaskStore['claimDue'] = async (request) => {
      const tasks = await disk.claimDue(request);
      for (const { id } of tasks) await this.#checkStart(id);
      return tasks;
    };
    return new Proxy(disk, {
      get: (target, property) => {
        if (property === 'claimDue') return claimDue;
        const member: unknown = Reflect.get(target, property, target);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
  }

  async configure(): Promise<void> {
    const { world } = this;
    const initial = world.between([10, 500]);
    const config = sampleConfig({
      callback: { timeout_ms: 5_000 },
      retry: {
        max_attempts: world.between([2, 8]),
        initial_backoff_ms: initial,
        max_backoff_ms: 2_000 + initial,
      },
      limits: { max_in_flight: world.between([2, 12]) },
      lease: { grace_ms: world.between([100, 2_000]) },
      circuit_breaker: { enabled: false },
    });
    await this.disk.putQueue({ queue, config, now: world.clock.now(), by: 'admin' });
  }

  async submit(): Promise<void> {
    const { world } = this;
    const now = world.clock.now();
    for (let count = world.between([1, 3]); count > 0; count--) {
      const id = world.random.ulid(now);
      const dependsOn = world.chance(0.5) ? this.#earlier().map((each) => this.#after(each)) : [];
      const stages = Array.from({ length: world.between([1, 5]) }, () => this.#stage());
      this.#plans.set(id, { id, stages, dependsOn });
      this.#sent.set(id, new Set());
      const flow = dependsOn.length > 0 ? { flow: { dependsOn } } : {};
      await this.disk.insertTasks([{ ...sampleTask(id, now), queue, ...flow }], now);
      this.tally.tasks++;
      if (dependsOn.length > 0) this.tally.dependents++;
    }
  }

  async signal(): Promise<void> {
    const ids = [...this.#plans.keys()];
    if (ids.length > 0) await this.#send(this.#pick(ids));
  }

  /** Handlers succeed from now on, and every signal that is waited for is sent. */
  async heal(): Promise<void> {
    this.#isHealed = true;
    for (const { id, stages } of this.#plans.values()) {
      const count = stages.filter(({ kind }) => kind === 'signal').length;
      while (this.#sent.get(id)!.size < count && (await this.#send(id)));
    }
  }

  /** Tasks that have not ended. */
  async waiting(): Promise<string[]> {
    const tasks = await this.disk.readTasks([...this.#plans.keys()]);
    const open = tasks.filter(({ status }) => status === 'PENDING' || status === 'IN_FLIGHT');
    return open.map(({ id, status, flow }) => `${id} ${status} ${flow?.wait?.kind ?? ''}`);
  }

  async judge(): Promise<void> {
    const tasks = await this.disk.readTasks([...this.#plans.keys()]);
    const known = new Map(tasks.map((task) => [task.id, task]));
    for (const { id, stages, dependsOn } of this.#plans.values()) {
      const { status, deadReason } = known.get(id)!;
      const hasFailed = dependsOn.some(
        (each) => each.on === 'success' && known.get(each.id)!.status === 'DEAD',
      );
      const isFailed = deadReason === 'DEPENDENCY_FAILED';
      this.#demand(hasFailed === isFailed, `${status} ${deadReason ?? ''} by its dependencies`, id);
      if (isFailed) this.tally.failed_dependents++;
      const isWhole = stages.every((_, at) => this.#recorded.has(`${id} s${at}`));
      this.#demand(status === 'DEAD' || isWhole, 'succeeded without all its steps', id);
    }
  }

  /** Runs the program of a task from where its steps end. */
  async request({ headers = {} }: OutboundRequest): Promise<OutboundOutcome> {
    const { world } = this;
    await world.clock.sleep(world.between([0, 1_500]));
    try {
      return await this.#run(headers['X-Queue-Task-Id']!, headers['X-Queue-Lease-Token']!);
    } catch (error) {
      if (!(error instanceof LostLease)) world.fail(error);
      return answer(503);
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #run(id: string, token: string): Promise<OutboundOutcome> {
    const { world } = this;
    const run = await this.#read(id);
    const done = new Map(run.steps.map((step) => [step.name, step]));
    const signals = [...run.signals];
    for (const [at, stage] of this.#plans.get(id)!.stages.entries()) {
      const name = `s${at}`;
      if (done.has(name)) continue;
      if (!this.#isHealed && world.chance(0.08)) return answer(world.chance(0.1) ? 404 : 500);
      if (stage.kind === 'sleep') {
        const begun = done.get(`${name}~until`)?.result;
        const until = begun === undefined ? world.clock.now() + stage.ms : Number(begun);
        if (begun === undefined) await this.#record(id, token, `${name}~until`, String(until));
        if (until > world.clock.now()) return this.#suspend({ until: new Date(until) });
      }
      const signal = stage.kind === 'signal' ? signals.shift() : undefined;
      if (stage.kind === 'signal' && !signal) return this.#suspend({ signals: ['go'] });
      if (stage.kind === 'tasks' && !(await this.#haveEnded(stage))) {
        return this.#suspend({ tasks: stage.ids, mode: stage.mode });
      }
      await this.#record(id, token, name, '1', signal && [signal.id]);
      if (!this.#isHealed && world.chance(0.05)) return answer(500);
    }
    return answer(200);
  }

  async #read(id: string): Promise<TaskRun> {
    const sent = [...this.#sent.get(id)!];
    const [task] = await this.disk.readTasks([id]);
    const run = (await readRuns(this.disk, [task!])).get(id);
    const { steps = [], signals = [] } = run ?? {};
    const unread = new Set(signals.map((signal) => signal.id));
    for (const each of sent) {
      this.#demand(unread.has(each) || this.#taken.has(each), 'a signal is lost', id);
    }
    return { dependencies: [], children: [], wokenBy: undefined, ...run, steps, signals };
  }

  async #record(
    id: string,
    token: string,
    name: string,
    result: string,
    consumes: readonly string[] = [],
  ): Promise<void> {
    for (const each of consumes) this.#taken.add(each);
    const steps = [{ name, result, consumes }];
    const now = this.world.clock.now();
    const recorded = await this.disk.recordSteps({ id, token, now, steps, maxSteps: 1_000 });
    if (recorded.kind !== 'done') throw new LostLease(recorded.kind);
    if (!recorded.steps[0]!.isRecorded) return;
    this.tally.steps++;
    this.world.note('step', { id, name, consumes });
    const key = `${id} ${name}`;
    this.#demand(!this.#recorded.has(key), 'a step was recorded twice', key);
    this.#recorded.add(key);
    for (const each of consumes) {
      this.#demand(!this.#consumed.has(each), 'a signal was consumed twice', id);
      this.#consumed.add(each);
    }
  }

  #suspend(suspension: object): OutboundOutcome {
    this.tally.suspensions++;
    return answer(200, suspendType, JSON.stringify(suspension));
  }

  async #haveEnded({ ids, mode }: Extract<Stage, { kind: 'tasks' }>): Promise<boolean> {
    const ends = (await this.disk.readTasks(ids)).map(({ status }) => hasEnded(status));
    return mode === 'all' ? ends.every(Boolean) : ends.some(Boolean);
  }

  async #checkStart(id: string): Promise<void> {
    const { dependsOn } = this.#plans.get(id)!;
    const tasks = await this.disk.readTasks(dependsOn.map((each) => each.id));
    const statuses = new Map(tasks.map((task) => [task.id, task.status]));
    for (const { id: other, on } of dependsOn) {
      const status = statuses.get(other)!;
      const isMet = on === 'end' ? hasEnded(status) : status === 'SUCCEEDED';
      this.#demand(isMet, `a dependent started while ${other} was ${status}`, id);
    }
  }

  /** True: it is stored. A repeat, as of a client without an answer, changes nothing. */
  async #send(id: string): Promise<boolean> {
    const { world } = this;
    const now = world.clock.now();
    const sent = this.#sent.get(id)!;
    const isRepeat = sent.size > 0 && world.chance(0.1);
    const signal = isRepeat ? this.#pick([...sent]) : world.random.ulid(now);
    const send = () => sendSignal(id, { id: signal, name: 'go', payload: '1' }, now);
    const { kind } = await this.disk.runFlow(send, now);
    const isOdd = isRepeat && kind === 'stored';
    this.#demand(!isOdd, 'a signal was stored twice', signal);
    if (kind === 'stored') this.tally.signals++;
    if (kind === 'stored') sent.add(signal);
    return kind === 'stored' || kind === 'repeated';
  }

  #stage(): Stage {
    const { world } = this;
    const kind = this.#pick(['step', 'step', 'sleep', 'signal', 'tasks'] as const);
    if (kind === 'sleep') return { kind, ms: world.between([1, 15_000]) };
    const ids = kind === 'tasks' ? this.#earlier() : [];
    if (kind !== 'tasks' || ids.length === 0) return { kind: kind === 'signal' ? kind : 'step' };
    return { kind, ids, mode: this.#pick(['any', 'all'] as const) };
  }

  /** Some tasks that were submitted before, so that nothing waits for itself. */
  #earlier(): string[] {
    const ids = [...this.#plans.keys()].slice(-12);
    return ids.filter(() => this.world.chance(0.25)).slice(0, 3);
  }

  #after(id: string): Dependency {
    return { id, on: this.#pick(['success', 'end'] as const) };
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[this.world.between([0, choices.length - 1])]!;
  }

  #demand(holds: boolean, message: string, about: string): void {
    if (!holds) this.world.fail(new Error(`${message} (${about})`));
  }
}

class LostLease extends Error {}

const hasEnded = (status: string) => status === 'SUCCEEDED' || status === 'DEAD';
