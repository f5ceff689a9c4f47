import type { Simulation } from '@millrace/kit/simulation';
import { MemoryStore } from '../test/support/memory-store/index.js';
import type { TaskStore } from '../src/storage/port/task-store.js';
import { nearClockChange } from './calendar.js';
import { Handlers } from './handlers.js';
import { judge } from './judge.js';
import { Operator } from './operator.js';
import { manners } from './queues.js';
import { RecordOperator } from './record-operator.js';
import { Servers } from './servers.js';
import { Witness } from './witness.js';

/** How likely each fault is, each time it could strike. */
export const faults: Readonly<Record<string, number>> = {
  'store.fail_before': 0.01,
  'store.fail_after': 0.01,
  'store.crash_before': 0.0005,
  'store.crash_after': 0.001,
  'hint.lost': 0.1,
};

/** What a run came to, for the report. */
export interface Tally {
  tasks: number;
  claims: number;
  callbacks: number;
  reports: number;
  crashes: number;
  stops: number;
  redriven: number;
  purged: number;
  lost_leases: number;
  cancelled_pending: number;
  cancelled_in_flight: number;
  unique_replays: number;
  schedule_runs: number;
  schedules_caught_up: number;
  schedule_runs_skipped: number;
  job_steps: number;
  jobs_done: number;
  jobs_cancelled: number;
}

/** All servers are up again by then, and have looked at their schedules. */
const quietMs = 30_000;

/** Some minutes of simulated load with faults, and the checks after them. */
export async function runQueueScenario(
  world: Simulation,
  disk: TaskStore = new MemoryStore(),
): Promise<Tally> {
  const calendar = nearClockChange(world);
  const witness = new Witness(world, disk, calendar, world.chance(0.4));
  const handlers: Handlers = new Handlers(world, manners, () => servers.any());
  const servers: Servers = new Servers(world, disk, witness, () => handlers);
  const view = witness.view(world.clock, 'operator');
  const operator = new Operator(world, view, servers);
  const records = new RecordOperator(world, view, servers, calendar);
  await world.complete(operator.configureAll());
  const names = world.chance(0.5) ? ['queue-1'] : ['queue-1', 'queue-2'];
  for (const name of names) servers.boot(name);

  const { clocksJump } = witness;
  const trouble = makeTrouble(world, { operator, records, servers, names, clocksJump });
  await world.runFor(world.between([40_000, 150_000]));
  for (const each of trouble) each.stop();

  // All faults end, except that a queue may stay paused.
  world.stopFaults();
  handlers.heal();
  servers.bootFallen(names);
  const forgotten = world.chance(0.3) ? [...operator.paused][0] : undefined;
  for (const queue of operator.paused) {
    if (queue !== forgotten) await world.complete(operator.setPaused(queue, false));
  }
  await world.runFor(quietMs);
  witness.schedules.checkCaughtUp(world.clock.now());
  await world.complete(records.pauseAll());
  await world.runUntil(() => hasEnded(world, witness, forgotten), 20 * 60_000);
  await world.runUntil(() => servers.all().length === names.length, 60_000);
  const delivery = servers.any()!;
  await world.complete(judge({ world, disk, witness, handlers, delivery }));
  await stopAll(world, servers, witness);
  return {
    tasks: witness.tasks.size,
    claims: witness.claims,
    callbacks: handlers.requests,
    reports: handlers.reports,
    crashes: servers.crashes,
    stops: servers.stops,
    redriven: operator.redriven,
    purged: operator.purged,
    lost_leases: witness.lostLeases,
    cancelled_pending: witness.cancelledPending,
    cancelled_in_flight: witness.cancelledInFlight,
    unique_replays: witness.keys.replays,
    schedule_runs: witness.schedules.runs,
    schedules_caught_up: witness.schedules.caughtUp,
    schedule_runs_skipped: witness.schedules.skipped,
    job_steps: witness.jobs.steps,
    jobs_done: witness.jobs.done,
    jobs_cancelled: witness.jobs.cancelled,
  };
}

interface Cast {
  operator: Operator;
  records: RecordOperator;
  servers: Servers;
  names: readonly string[];
  clocksJump: boolean;
}

function makeTrouble(world: Simulation, cast: Cast) {
  const { operator, records, servers, names, clocksJump } = cast;
  const aServer = () => names[world.between([0, names.length - 1])]!;
  const act = (action: () => Promise<void>) => () =>
    void action().catch((error: unknown) => world.fail(error));
  const queues = [...manners.keys()];
  const aQueue = () => queues[world.between([0, queues.length - 1])]!;
  return [
    world.disturb(
      [50, 8_000],
      act(() => operator.submit()),
    ),
    world.disturb(
      [5_000, 60_000],
      act(() => operator.togglePause()),
    ),
    world.disturb(
      [5_000, 60_000],
      act(() => operator.configure(aQueue())),
    ),
    world.disturb(
      [2_000, 40_000],
      act(() => operator.tendDead()),
    ),
    world.disturb(
      [500, 20_000],
      act(() => operator.cancel()),
    ),
    world.disturb(
      [500, 10_000],
      act(() => records.tendSchedule()),
    ),
    world.disturb(
      [4_000, 40_000],
      act(() => records.createJob()),
    ),
    world.disturb([15_000, 120_000], () => servers.crash(aServer())),
    world.disturb([20_000, 150_000], () => servers.stop(aServer())),
    world.disturb([1_000, 10_000], () => servers.bootFallen(names)),
    world.disturb([20_000, 120_000], () => {
      if (clocksJump) world.jumpClock(world.between([-90_000, 90_000]));
    }),
  ];
}

function hasEnded(world: Simulation, witness: Witness, forgotten: string | undefined): boolean {
  if (!witness.jobs.areAllEnded) return false;
  const soon = world.clock.now() + 3_600_000;
  for (const task of witness.tasks.values()) {
    if (task.status === 'IN_FLIGHT') return false;
    if (task.status !== 'PENDING' || task.queue === forgotten) continue;
    if (task.dueAt < soon) return false;
  }
  return true;
}

/** A graceful shutdown leaves nothing in flight. */
async function stopAll(world: Simulation, servers: Servers, witness: Witness): Promise<void> {
  const startedAt = world.timeline.elapsedMs;
  await world.complete(servers.shutDown(1_000));
  const tookMs = world.timeline.elapsedMs - startedAt;
  if (tookMs > 1_000) throw new Error(`servers that run nothing took ${tookMs} ms to stop`);
  const left = [...witness.tasks.values()].filter((task) => task.status === 'IN_FLIGHT');
  if (left.length > 0) throw new Error(`${left.length} tasks are left in flight`);
}
