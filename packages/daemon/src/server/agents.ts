import { UndoList } from '@millrace/kit/undo-list';
import type { World } from '@millrace/kit/world';
import { messageOf } from '@millrace/kit/errors';
import { openBranches, type Branches } from '../branches/branches.js';
import { openGuard } from '../guard/guard.js';
import { openMetrics, type Metrics } from '../metrics/metrics.js';
import { openNotify, type Notify } from '../notify/notify.js';
import { Pipelines } from '../pipelines/pipelines.js';
import { AgentFlows } from '../plans/engine.js';
import { Plans } from '../plans/plans.js';
import { openQueueTasks, startPuller, type QueueTasks } from '../queue-callback/index.js';
import { Questions } from '../questions/questions.js';
import type { Backends } from '../registry/backends.js';
import type { Session, Sessions } from '../sessions/port.js';
import { AgentSessions } from '../sessions/sessions.js';
import { Workbench } from '../workbench/workbench.js';
import type { Accounts, Base, Programs } from './services.js';

export interface AgentsParts
  extends
    Base,
    Pick<Programs, 'backends' | 'acp' | 'flags'>,
    Pick<Accounts, 'readSpend' | 'refreshCopy' | 'opencodeAnswer' | 'recorder'> {
  acpHost?: string | undefined;
  permissionTool?: string | undefined;
  spawnTimes?: number[] | undefined;
}

/** The services around agents. */
export interface Agents {
  sessions: Sessions;
  notify: Notify;
  questions: Questions;
  metrics: Metrics;
  branches: Branches;
  pipelines: Pipelines;
  plans: Plans;
  workbench: Workbench;
  queueTasks: QueueTasks;
  /** Stops watching. The agents keep running; the next daemon adopts them. */
  close(): Promise<void>;
}

/** Opens the services in order of dependency, and closes them in reverse on failure. */
export async function openAgents(parts: AgentsParts): Promise<Agents> {
  const undo = new UndoList();
  const close = () => undo.run();
  const { settings } = parts;
  const { database } = parts.store;
  try {
    const questions = await Questions.open({ ...parts.world, database });
    const sessions = await AgentSessions.open({ ...parts, ...parts.world, database, questions });
    undo.add(() => sessions.close());
    const common = { ...parts, ...parts.world, database, sessions };
    const notifyParts = { ...common, questions, settings: settings.values.notify };
    const { notify, ...openedNotify } = await openNotify(notifyParts);
    undo.add(() => openedNotify.close());
    const newGuard = () =>
      openGuard({ ...common, settings: settings.values.tokens, alerts: notify });
    let guard = await newGuard();
    undo.add(() => guard.close());
    settings.onChange({
      name: 'notifications',
      group: 'notify',
      apply: () => openedNotify.apply(settings.values.notify),
    });
    settings.onChange({
      name: 'context guard',
      group: 'tokens',
      apply: async () => {
        await sessions.updateContextStates();
        await guard.close();
        guard = await newGuard();
      },
    });
    const metrics = await openMetrics({ ...common, isRecording: settings.values.metrics });
    undo.add(() => metrics.close());
    const isOn = settings.values.branches.enabled;
    const branches = await openBranches({ ...common, alerts: notify, isOn });
    undo.add(() => branches.close());
    const queueParts = { ...common, settings: settings.values.queue };
    const exactUsdOf = (session: Session) => exactUsd(parts.readSpend, session);
    const queueTasks = await openQueueTasks({ ...queueParts, exactUsdOf });
    undo.add(() => queueTasks.close());
    const { environment } = parts;
    const git = {
      clock: parts.world.clock,
      environment,
      runsHooks: settings.values.worktrees.hooks,
    };
    const workbench = new Workbench(git);
    const intervalMs = () => settings.values.agents.feedback_interval;
    const flows = new AgentFlows(common);
    undo.add(() => flows.close());
    const planParts = { ...common, flows, questions, workbench, git, exactUsdOf, intervalMs };
    const plans = new Plans(planParts);
    undo.add(() => plans.close());
    // Last, so that every service is notified of what happened while the daemon was down.
    await sessions.begin();
    await plans.resume();
    const pipelines = await Pipelines.open({ ...common, flows });
    undo.add(() => pipelines.close());
    const puller = startPuller(queueParts, queueTasks);
    undo.add(() => puller?.close());
    const shown = { sessions, notify, questions, metrics, branches, pipelines, plans, queueTasks };
    return { ...shown, workbench, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The cost of a session so far; null when it is unknown. */
async function exactUsd(
  readSpend: AgentsParts['readSpend'],
  { backend_session_id: key }: Session,
): Promise<number | null> {
  if (key === null) return null;
  const { by_agent } = await readSpend();
  return by_agent.find((row) => row.key === key)?.exact_usd ?? null;
}

/** Programs are run only after this time, because they may take seconds of CPU for their help. */
const delayMs = 10_000;

/**
 * Checks how installed backends support the Agent Client Protocol, soon after the start and in the
 * background. Returns a function that waits for its end.
 */
export function fillAcpRows({
  backends,
  clock,
  log,
}: Pick<World, 'clock' | 'log'> & { backends: Pick<Backends, 'findMissingAcp'> }): {
  close: () => Promise<void>;
} {
  let search = Promise.resolve();
  const timer = clock.after(delayMs, () => {
    search = backends
      .findMissingAcp((backend, error) =>
        log.warn({ backend, reason: messageOf(error) }, 'failed to check for ACP'),
      )
      .catch((error: unknown) => log.warn({ err: error }, 'failed to check for ACP'));
  });
  return {
    close: () => {
      timer.cancel();
      return search;
    },
  };
}
