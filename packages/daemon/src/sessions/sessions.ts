import { mkdirSync, rmSync } from 'node:fs';
import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Database } from '@millrace/engine';
import { formatTimestamp } from '@millrace/kit/units';
import type { World } from '@millrace/kit/world';
import { contextState, thresholdsFor } from '../core/guard.js';
import { fail } from '../core/refusals.js';
import {
  isEnded,
  withFacts,
  withStatus,
  type Entry,
  type WorktreeOrigin,
} from '../core/session.js';
import type { PolicyRule } from '../questions/policy.js';
import type { StoredQuestion } from '../questions/question.js';
import type { Questions } from '../questions/questions.js';
import type { Backends } from '../registry/backends.js';
import { AcpDriver } from './drivers/acp.js';
import type { AcpSources } from './cli/acp-sources.js';
import { adopt } from './adoption.js';
import { PendingQuestions } from './pending-questions.js';
import { entryOf, notFound, SessionStore } from './session-store.js';
import type { EvidenceParts } from './evidence/observation.js';
import { HeadlessDriver } from './drivers/headless.js';
import { Input } from './input.js';
import { readOutput } from './evidence/output.js';
import {
  isFullScreen,
  screenOutput,
  OutputLog,
  sessionDirectory,
  sessionsDirectory,
} from './drivers/session-files.js';
import type { OfferedFlags } from './cli/offered-flags.js';
import { PermissionRequests } from './drivers/permission-requests.js';
import type { Session, SessionChange, Sessions, SpawnOrigin, SpawnRequest } from './port.js';
import { Restarts } from './restarts.js';
import { Runner } from './runner.js';
import { Spawner, type SpawnerParts } from './spawner.js';
import { usable } from './spawning.js';
import { Conversation } from './conversation.js';
import { TmuxDriver } from './drivers/tmux.js';
import { placesOf, findTranscript } from './evidence/transcript.js';
import { lastAnswer } from './evidence/last-answer.js';
import { Turns } from '../core/turns.js';
import { Watch } from './watch.js';
import { removeWorktree } from './worktrees.js';

export interface SessionsParts extends World {
  database: Database;
  backends: Backends;
  dataDir: string;
  environment: Readonly<Record<string, string | undefined>>;
  extra: SpawnerParts['extra'];
  trusted: readonly string[];
  questions: Questions;
  acp: AcpSources;
  flags: OfferedFlags;
  /** The program of the host of agents over ACP; for tests. */
  acpHost?: string | undefined;
  /** The program through which headless agents ask; for tests. */
  permissionTool?: string | undefined;
  defaultDriver: SpawnerParts['defaultDriver'];
  /** `permissions.policy`. */
  policy: () => readonly PolicyRule[];
  /** `permissions.timeout`. */
  permissionTimeoutMs: () => number;
  limitRetryMs: () => number;
  contextLimits: EvidenceParts['contextLimits'];
  /** Prompt sent when a crashed agent is resumed. */
  resumePrompt: () => string;
  budget: SpawnerParts['budget'];
  /** `worktrees.hooks`: whether hooks and filters of repositories run. */
  runsHooks: boolean;
  /** Environment variables of a backend's program. */
  variablesFor: (backend: string) => Record<string, string>;
}

/** The agents that this daemon runs. */
export class AgentSessions implements Sessions {
  readonly #parts: SessionsParts;
  readonly #store: SessionStore;
  readonly #tmux: TmuxDriver;
  readonly #acp: AcpDriver;
  readonly #transcripts: Parameters<typeof lastAnswer>[0];
  readonly #requests: PermissionRequests;
  readonly #input: Input;
  readonly #runner: Runner;
  readonly #watch: Watch;
  readonly #restarts: Restarts;
  readonly #spawner: Spawner;
  readonly #pendingQuestions: PendingQuestions;
  /** Serializes starts and stops of the agent of a session. */
  readonly #turns = new Turns();

  private constructor(parts: SessionsParts, store: SessionStore) {
    this.#parts = parts;
    this.#store = store;
    const headless = new HeadlessDriver(() => void this.#watch.wake());
    this.#tmux = new TmuxDriver(parts);
    const { dataDir, clock, acpHost: program } = parts;
    this.#acp = new AcpDriver({ dataDir, clock, program, onNews: () => void this.#watch.wake() });
    const drivers = { tmux: this.#tmux, acp: this.#acp, headless };
    const wake = () => this.#watch.wake();
    const requests = new PermissionRequests({
      dataDir,
      program: parts.permissionTool,
      onNews: () => void wake(),
    });
    this.#requests = requests;
    const conversation = new Conversation({ clock: parts.clock, driver: this.#tmux });
    this.#input = new Input({ ...parts, store, conversation, acp: this.#acp, requests, wake });
    this.#transcripts = {
      places: placesOf(parts.environment),
      taken: (id: string) => this.#ownSessions(id),
    };
    this.#runner = new Runner({
      ...parts,
      store,
      requests,
      driverOf: ({ driver }) => drivers[driver],
      hasTranscript: async (entry) =>
        (await findTranscript(this.#transcripts, entry)) !== undefined,
      onStart: () => void this.#watch.wake(),
    });
    this.#restarts = new Restarts({
      ...parts,
      store,
      revive: (id) => this.#turns.in(id, () => this.#revive(id)),
    });
    this.#pendingQuestions = new PendingQuestions({
      ...parts,
      store,
      answer: (...answer) => this.#input.answer(...answer),
    });
    this.#watch = new Watch({
      ...parts,
      ...this.#transcripts,
      store,
      requests,
      drivers: [headless, this.#tmux, this.#acp],
      isStarting: (id) => this.#runner.isStarting(id),
      onDialog: (entry, dialog) => this.#pendingQuestions.observe(entry, dialog),
      onPermissions: (entry, all) => this.#pendingQuestions.observePermissions(entry, all),
      onReady: (id) => this.#input.prompt(id),
      onEnd: (id) => this.#restarts.plan(id),
    });
    this.#spawner = new Spawner({
      ...parts,
      store,
      start: (id) => void this.#runner.start(id, 'first'),
    });
  }

  static async open(parts: SessionsParts): Promise<AgentSessions> {
    mkdirSync(sessionsDirectory(parts.dataDir), { recursive: true, mode: 0o700 });
    return new AgentSessions(parts, await SessionStore.open(parts.database, parts.log));
  }

  /**
   * Adopts the agents that the previous daemon left running, and starts to watch them. Listeners
   * must be registered before.
   */
  async begin(): Promise<void> {
    const isStarting = (id: string) => this.#runner.isStarting(id);
    await adopt({ ...this.#parts, store: this.#store, keeper: this.#tmux, isStarting });
    await this.#pendingQuestions.begin();
    await this.#watch.wake();
    for (const { session, handle } of this.#store.all()) {
      // The daemon before this one was ending it.
      if (handle.isStopping && !isEnded(session)) this.#finishStop(session.id);
      // Sessions that ended while the daemon was down.
      if (isEnded(session) && handle.restartAt === null) await this.#restarts.plan(session.id);
    }
    this.#restarts.resume();
  }

  #finishStop(id: string): void {
    this.stop(id).catch((error: unknown) => {
      this.#parts.log.error({ err: error, session: id }, 'failed to stop agent');
    });
  }

  spawn(
    request: SpawnRequest,
    origin: SpawnOrigin = {},
  ): Promise<{ session: Session; isReplay: boolean }> {
    return this.#spawner.spawn(request, origin);
  }

  list(): Promise<Session[]> {
    return Promise.resolve(this.#store.all().map(({ session }) => session));
  }

  find(id: string): Promise<Session | undefined> {
    return Promise.resolve(this.#store.get(id)?.session);
  }

  async output(
    id: string,
    from: { after?: number | undefined; limit: number },
  ): Promise<DaemonSchema<'SessionOutput'>> {
    const { session, handle } = this.#entry(id);
    const directory = sessionDirectory(this.#parts.dataDir, id);
    const log = new OutputLog(directory);
    if (session.driver === 'tmux' && isFullScreen(handle.cli)) {
      const screen = isEnded(session) ? undefined : await this.#tmux.history(id);
      return screenOutput({ directory, screen, end: log.end() }, from);
    }
    return readOutput({ log, format: handle.format, isOver: isEnded(session) }, from);
  }

  lastAnswer(id: string): Promise<string | undefined> {
    return lastAnswer(this.#transcripts, this.#entry(id));
  }

  send(id: string, text: string): Promise<Session> {
    return this.#input.send(id, text);
  }

  answer(stored: StoredQuestion, answer: string): Promise<'taken' | 'gone'> {
    return this.#input.answer(stored, answer);
  }

  interrupt(id: string): Promise<void> {
    return this.#input.interrupt(id);
  }

  stop(id: string): Promise<Session> {
    return this.#turns.in(id, () => this.#stop(id));
  }

  async #stop(id: string): Promise<Session> {
    const { session } = this.#entry(id);
    if (isEnded(session)) await this.#noRestart(id);
    else await this.#end(id);
    return this.#entry(id).session;
  }

  restart(id: string): Promise<Session> {
    return this.#turns.in(id, () => this.#restart(id));
  }

  async #restart(id: string): Promise<Session> {
    const { session } = this.#entry(id);
    if (session.status === 'spawning') {
      throw fail('SESSION_STATE', 'The session is still spawning: wait until it works.');
    }
    usable(await this.#parts.backends.find(session.backend));
    if (!isEnded(session)) await this.#end(id);
    const isAtRest = ['done', 'idle', 'waiting_for_input'].includes(session.status);
    const entry = await this.#runner.rewind(id, 'it is restarted on request', true);
    if (!entry) throw notFound(id);
    void this.#runner.start(id, isAtRest ? 'again' : 'revived');
    return entry.session;
  }

  remove(id: string): Promise<DaemonSchema<'SessionDeletion'>> {
    return this.#turns.in(id, () => this.#remove(id));
  }

  async #remove(id: string): Promise<DaemonSchema<'SessionDeletion'>> {
    const { session } = this.#entry(id);
    if (isEnded(session)) await this.#noRestart(id);
    else await this.#end(id);
    const { handle } = this.#entry(id);
    const { worktree } = session;
    const retained =
      worktree !== null && handle.worktree
        ? await this.#removeWorktree(id, worktree, handle.worktree)
        : { isRetained: false as const };
    await this.#store.remove(id);
    rmSync(sessionDirectory(this.#parts.dataDir, id), { recursive: true, force: true });
    return {
      id,
      deleted: true,
      worktree,
      worktree_kept: retained.isRetained,
      reason: retained.isRetained ? retained.reason : null,
    };
  }

  async #removeWorktree(id: string, path: string, mark: WorktreeOrigin) {
    const other = this.#store
      .all()
      .find(({ session }) => session.id !== id && isWithin(path, session.workdir));
    if (!other) return removeWorktree(this.#parts, path, mark);
    return {
      isRetained: true as const,
      reason: `the session ${other.session.id} works in it, too`,
    };
  }

  async setForceCompact(id: string, state: DaemonSchema<'ForceCompactChoice'>): Promise<Session> {
    this.#entry(id);
    const entry = await this.#store.change(id, ({ session, handle }) => ({
      handle,
      session: withFacts(session, { force_compact: state }, this.#parts.clock.now()),
    }));
    if (!entry) throw notFound(id);
    return entry.session;
  }

  /** A session that works, or was removed meanwhile, is not changed. */
  async setMerged(id: string, isMerged: boolean): Promise<void> {
    const now = this.#parts.clock.now();
    await this.#store.change(id, ({ session, handle }) => {
      const mergedAt = isMerged ? formatTimestamp(now) : null;
      const isUnchanged = session.status === 'working' || (!isMerged && !session.merged_at);
      return {
        handle,
        session: isUnchanged ? session : withFacts(session, { merged_at: mergedAt }, now),
      };
    });
  }

  /** Compares every context with the limits, which have changed. */
  async updateContextStates(): Promise<void> {
    const { clock, contextLimits } = this.#parts;
    for (const { session } of this.#store.all()) {
      await this.#store.change(session.id, (entry) => {
        const { context_tokens: tokens, context_window: window } = entry.session;
        const state = contextState(tokens, thresholdsFor(contextLimits(), window));
        if (state === entry.session.context_state) return entry;
        const facts = { context_state: state };
        return { handle: entry.handle, session: withFacts(entry.session, facts, clock.now()) };
      });
    }
  }

  onChange(listener: (change: SessionChange) => void): () => void {
    return this.#store.onChange(listener);
  }

  /** Detaches from running agents; the next daemon adopts them. */
  async close(): Promise<void> {
    this.#restarts.close();
    await this.#runner.settled();
    await this.#watch.close();
    await this.#input.settled();
    await this.#pendingQuestions.settled();
    this.#acp.close();
    this.#requests.close();
    await this.#tmux.tidy();
  }

  async #end(id: string): Promise<void> {
    await this.#runner.end(id);
    await this.#watch.wake();
    const entry = this.#store.get(id);
    if (!entry || isEnded(entry.session)) return;
    // The process has ended, but tmux does not report it yet: a stop was requested, so it counts as
    // ended.
    await this.#runner.release(entry.session);
    await this.#store.change(id, ({ session, handle }) => {
      const now = this.#parts.clock.now();
      const over = withFacts(session, { pid: null }, now);
      return { handle, session: withStatus(over, 'done', 'it was stopped', now) };
    });
  }

  async #noRestart(id: string): Promise<void> {
    await this.#store.change(id, ({ session, handle }) => ({
      session,
      handle: { ...handle, isStopping: true, restartAt: null },
    }));
  }

  /** Starts an agent again that has ended by itself. */
  async #revive(id: string): Promise<void> {
    const entry = this.#store.get(id);
    if (!entry || entry.handle.restartAt === null || !isEnded(entry.session)) return;
    await this.#runner.rewind(id, 'it is restarted by itself', false);
    await this.#runner.start(id, 'revived');
  }

  /** The backend's own sessions of all agents but one. */
  #ownSessions(but: string): Set<string> {
    const others = this.#store.all().filter(({ session }) => session.id !== but);
    return new Set(others.map(({ session }) => session.backend_session_id ?? ''));
  }

  #entry(id: string): Entry {
    return entryOf(this.#store, id);
  }
}

function isWithin(directory: string, path: string): boolean {
  return path === directory || path.startsWith(`${directory}/`);
}
