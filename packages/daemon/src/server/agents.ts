import type { Outbound } from '@millrace/kit/outbound';
import { UndoList } from '@millrace/kit/undo-list';
import type { World } from '@millrace/kit/world';
import { openBranches, type Branches } from '../branches/index.js';
import { openGuard } from '../guard/guard.js';
import { openMetrics, type Metrics } from '../metrics/index.js';
import { openNotify, type Notify } from '../notify/index.js';
import { Pipelines } from '../pipelines/pipelines.js';
import { openQueueTasks, startPuller, type QueueTasks } from '../queue-callback/index.js';
import { Questions } from '../questions/questions.js';
import type { Backends } from '../registry/backends.js';
import type { SavingsRecorder } from '../savings/recorder.js';
import type { AcpSources } from '../sessions/cli/acp-sources.js';
import type { OfferedFlags } from '../registry/run-program.js';
import type { Session, Sessions } from '../sessions/port.js';
import { AgentSessions } from '../sessions/sessions.js';
import type { Spend } from '../spend/spend.js';
import type { Store } from '../storage/store.js';
import type { LiveSettings } from './live-settings.js';

export interface AgentsParts {
  settings: Pick<LiveSettings, 'values' | 'onChange'>;
  world: World;
  store: Store;
  backends: Backends;
  /** Starts to count when it is first called. */
  readSpend: () => ReturnType<Spend['read']>;
  /** Undefined when the setting `savings` is off. */
  recorder: SavingsRecorder | undefined;
  /** Refuses link-local addresses. */
  outbound: Outbound;
  environment: Readonly<Record<string, string | undefined>>;
  /** Environment variables of a backend's program. */
  variablesFor: (backend: string) => Record<string, string>;
  dataDir: string;
  acp: AcpSources;
  flags: OfferedFlags;
  acpHost: string | undefined;
  permissionTool: string | undefined;
}

/** The services around agents. */
export interface Agents {
  sessions: Sessions;
  notify: Notify;
  questions: Questions;
  metrics: Metrics;
  branches: Branches;
  pipelines: Pipelines;
  queueTasks: QueueTasks;
  /** Stops watching. The agents keep running; the next daemon adopts them. */
  close(): Promise<void>;
}

/** Opens the services in order of dependency, and closes them in reverse on failure. */
export async function openAgents(parts: AgentsParts): Promise<Agents> {
  const undo = new UndoList();
  const close = () => undo.run();
  try {
    const { database } = parts.store;
    const questions = await Questions.open({ ...parts.world, database });
    const sessions = await AgentSessions.open({ ...parts, ...parts.world, database, questions });
    undo.add(() => sessions.close());
    const { notify, ...openedNotify } = await openNotify({
      ...notifyOptions(parts, sessions),
      questions,
    });
    undo.add(() => openedNotify.close());
    const { settings } = parts;
    let guard = await openGuard(guardOptions(parts, sessions, notify));
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
        guard = await openGuard(guardOptions(parts, sessions, notify));
      },
    });
    const metrics = await openMetrics(metricsParts(parts, sessions));
    undo.add(() => metrics.close());
    const branches = await openBranches(branchesParts(parts, sessions, notify));
    undo.add(() => branches.close());
    const pipelines = await Pipelines.open(pipelinesParts(parts, sessions));
    undo.add(() => pipelines.close());
    const queueTasks = await openQueueTasks(queueParts(parts, sessions));
    undo.add(() => queueTasks.close());
    // Last, so that every service is notified of what happened while the daemon was down.
    await sessions.begin();
    const puller = startPuller(pullerParts(parts), queueTasks);
    undo.add(() => puller?.close());
    return { sessions, notify, questions, metrics, branches, pipelines, queueTasks, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function notifyOptions(parts: AgentsParts, sessions: Sessions) {
  const { settings, world, store, environment, dataDir, outbound } = parts;
  const { database } = store;
  return {
    ...world,
    settings: settings.values.notify,
    database,
    environment,
    dataDir,
    outbound,
    sessions,
  };
}

function guardOptions(
  { settings, world, store, recorder }: AgentsParts,
  sessions: Sessions,
  alerts: Notify,
) {
  const { clock, log } = world;
  const { database } = store;
  return { clock, log, settings: settings.values.tokens, database, sessions, alerts, recorder };
}

function metricsParts({ settings, world, store, environment }: AgentsParts, sessions: Sessions) {
  const { clock, log } = world;
  const { database } = store;
  return { clock, log, database, sessions, environment, isRecording: settings.values.metrics };
}

function branchesParts(parts: AgentsParts, sessions: Sessions, alerts: Notify) {
  const { settings, world, store, environment } = parts;
  const { clock, log } = world;
  const { database } = store;
  const isOn = settings.values.branches.enabled;
  return { clock, log, database, sessions, alerts, environment, isOn };
}

function pipelinesParts({ world, store, backends }: AgentsParts, sessions: Sessions) {
  return { world, database: store.database, sessions, backends };
}

function queueParts(parts: AgentsParts, sessions: Sessions) {
  const exactUsdOf = async ({ backend_session_id: key }: Session) => {
    if (key === null) return null;
    const { by_agent } = await parts.readSpend();
    return by_agent.find((row) => row.key === key)?.exact_usd ?? null;
  };
  return { ...pullerParts(parts), database: parts.store.database, sessions, exactUsdOf };
}

function pullerParts({ settings, world, outbound, dataDir }: AgentsParts) {
  return { world, outbound, dataDir, settings: settings.values.queue };
}
