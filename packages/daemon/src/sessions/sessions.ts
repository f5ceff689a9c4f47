import { mkdirSync, rmSync } from 'node:fs';
import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Database } from '@millrace/engine';
import type { World } from '@millrace/kit/world';
import { contextState, thresholdsFor } from '../core/guard.js';
import { fail, invalid } from '../core/api.js';
import { usable } from '../registry/backends.js';
import { isEnded, type WorktreeOrigin } from '../core/session.js';
import { isFromCall, isFromPlan, type StoredQuestion } from '../questions/question.js';
import { adopt } from './adoption.js';
import { checkTyped } from './answer.js';
import { AcpDriver } from './drivers/acp.js';
import { HeadlessDriver } from './drivers/headless.js';
import { PermissionRequests } from '../permission-tool/requests.js';
import {
  isFullScreen,
  OutputLog,
  screenOutput,
  sessionDirectory,
  sessionsDirectory,
} from './drivers/session-files.js';
import { TmuxDriver } from './drivers/tmux.js';
import { screenKindOf } from './cli/command-lines.js';
import { lastAnswer } from './evidence/last-answer.js';
import { screenAnswer } from './evidence/pane-markers.js';
import { readOutput } from './evidence/output.js';
import { placesOf } from './evidence/transcript.js';
import { AgentInput } from './input.js';
import { PendingQuestions, type PendingQuestionsParts } from './pending-questions.js';
import type { Session, SessionChange, Sessions, SpawnOrigin, SpawnRequest } from './port.js';
import { SessionRunner, type RunnerParts } from './runner.js';
import { step } from './session.js';
import type { InputKind, SessionEvent, Step } from '../core/session-events.js';
import { notFound, SessionStore } from './session-store.js';
import { Spawner, type SpawnerParts } from './spawner.js';
import { SessionServers } from './serving.js';
import { tearDownWorktree } from './drivers/worktree-rules.js';
import { removeWorktree } from './worktrees.js';

/** The parts that are not made here. */
type Given<Parts> = Omit<
  Parts,
  'store' | 'drivers' | 'requests' | 'input' | 'pending' | 'places' | 'taken' | 'deliver'
>;

export interface SessionsParts
  extends World, Given<RunnerParts>, Given<SpawnerParts>, Given<PendingQuestionsParts> {
  database: Database;
  /** The program of the host of agents over ACP; for tests. */
  acpHost?: string | undefined;
  /** The program through which headless agents ask; for tests. */
  permissionTool?: string | undefined;
  /** Gets the time that the spawn of each new session took, in milliseconds. */
  spawnTimes?: number[] | undefined;
}

/** The agents that this daemon runs. */
export class AgentSessions implements Sessions {
  readonly #parts: RunnerParts & SessionsParts;
  readonly #runner: SessionRunner;
  readonly #spawner: Spawner;
  readonly #servers: SessionServers;

  private constructor(
    parts: SessionsParts,
    private readonly store: SessionStore,
  ) {
    const { dataDir, clock, acpHost, permissionTool: program } = parts;
    const onNews = () => void this.#runner.wake();
    const requests = new PermissionRequests({ program, onNews });
    const drivers = {
      headless: new HeadlessDriver(onNews),
      tmux: new TmuxDriver(parts),
      acp: new AcpDriver({ dataDir, clock, program: acpHost, onNews }),
    };
    this.#parts = {
      ...parts,
      store,
      requests,
      drivers,
      input: new AgentInput({ clock, dataDir, ...drivers, requests, settings: parts.settings }),
      pending: new PendingQuestions({ ...parts, store, deliver: this.answer.bind(this) }),
      places: { ...placesOf(parts.environment), dataDir },
      taken: (id) => store.ownSessionsBut(id),
    };
    this.#runner = new SessionRunner(this.#parts);
    this.#spawner = new Spawner({ ...parts, store });
    this.#servers = new SessionServers({
      ...this.#parts,
      note: (id, serve) => this.#runner.feed(id, { type: 'note', facts: { serve } }),
    });
    store.onChange((change) => {
      if (change.after?.worktree || change.after?.serve) this.#servers.observe(change);
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
    const runner = this.#runner;
    await adopt({ ...this.#parts, tmux: this.#parts.drivers.tmux, runner });
    await this.#parts.pending.begin();
    await this.#servers.begin();
    await runner.wake();
    for (const { session } of this.store.all()) await runner.feed(session.id, { type: 'resume' });
  }

  async spawn(
    request: SpawnRequest,
    origin: SpawnOrigin = {},
  ): Promise<{ session: Session; isReplay: boolean }> {
    const { clock, spawnTimes } = this.#parts;
    const startedAt = clock.monotonic();
    const spawned = await this.#spawner.spawn(request, origin);
    if (spawned.isReplay) return spawned;
    await this.#runner.feed(spawned.session.id, { type: 'created' });
    // They stay until they are shown; without anyone who looks, only some.
    if (spawnTimes && spawnTimes.length < 1_000) spawnTimes.push(clock.monotonic() - startedAt);
    return spawned;
  }

  secretOf(id: string): string | undefined {
    const entry = this.store.get(id);
    return entry && !isEnded(entry.session) ? entry.handle.token : undefined;
  }

  list(): Promise<Session[]> {
    return Promise.resolve(this.store.all().map(({ session }) => session));
  }

  find(id: string): Promise<Session | undefined> {
    return Promise.resolve(this.store.get(id)?.session);
  }

  async output(
    id: string,
    from: { after?: number | undefined; limit: number },
  ): Promise<DaemonSchema<'SessionOutput'>> {
    const { session, handle } = this.store.need(id);
    const directory = sessionDirectory(this.#parts.dataDir, id);
    const log = new OutputLog(directory);
    if (session.driver === 'tmux' && isFullScreen(handle.cli)) {
      const screen = isEnded(session) ? undefined : await this.#parts.drivers.tmux.history(id);
      return screenOutput({ directory, screen, end: log.end() }, from);
    }
    return readOutput({ log, format: handle.format, isOver: isEnded(session) }, from);
  }

  /** What its terminal shows, in colour; refuses where there is none. */
  async screen(id: string): Promise<DaemonSchema<'SessionScreen'>> {
    const { session } = this.store.need(id);
    const hasScreen = session.driver === 'tmux' && !isEnded(session);
    const text = hasScreen ? await this.#parts.drivers.tmux.colours(id) : undefined;
    if (text === undefined) {
      const why = session.driver === 'tmux' ? 'has no terminal now' : `is run by ${session.driver}`;
      throw fail('SESSION_STATE', `The session ${why}: read its output instead.`);
    }
    return { lines: text.trimEnd().split('\n') };
  }

  async lastAnswer(id: string): Promise<string | undefined> {
    const entry = this.store.need(id);
    const written = await lastAnswer(this.#parts, entry);
    if (written !== undefined || entry.session.driver !== 'tmux') return written;
    const { lines } = await this.output(id, { limit: 1_000 });
    return screenAnswer(screenKindOf(this.#parts.settings.values.backends.extra, entry), lines);
  }

  async send(id: string, text: string): Promise<Session> {
    const entry = this.store.need(id);
    if (text.includes('\0')) throw invalid('text', 'holds a NUL, which no agent takes');
    if (entry.session.driver === 'tmux') checkTyped('text', text);
    const inputAt = this.#parts.clock.now();
    const { keepsPrompt } = this.#writeTo(id, 'text');
    const isTaken = await this.#parts.input.say(entry, text).catch(async (error: unknown) => {
      // Most likely it has ended meanwhile.
      await this.#runner.wake();
      this.#writeTo(id, 'interrupt');
      throw error;
    });
    if (!isTaken) {
      const next =
        entry.session.driver === 'acp'
          ? 'Look at it with `ctl agent explain`, then send the text again.'
          : 'Open its terminal with `ctl agent attach`.';
      throw fail('SESSION_STATE', `The agent did not take the text. ${next}`);
    }
    return this.#written(id, { inputAt, kind: 'text', isTaken, keepsPrompt });
  }

  /** `message` goes to a headless agent that is denied a permission. */
  async answer(
    { question, ref }: StoredQuestion,
    answer: string,
    message?: string,
  ): Promise<'taken' | 'gone'> {
    const { session_id: id } = question;
    // An agent waits for the answer in a call of its own, or a plan does.
    if (isFromCall(ref) || isFromPlan(ref)) return 'taken';
    const entry = this.store.need(id);
    const { keepsPrompt } = this.#writeTo(id, ref === null ? 'choice' : 'permission');
    if (ref === null && question.kind === 'text') {
      await this.send(id, answer);
      return 'taken';
    }
    const inputAt = this.#parts.clock.now();
    const outcome =
      ref === null
        ? await this.#parts.input.choose(entry, question, answer)
        : await this.#parts.input.permit(entry, ref, answer, message);
    // The protocol itself says when the agent continues.
    const isReported = ref !== null && entry.session.driver === 'acp';
    if (isReported) void this.#runner.wake();
    else if (outcome === 'taken') {
      await this.#written(id, { inputAt, kind: 'answer', isTaken: true, keepsPrompt });
    }
    return outcome;
  }

  async interrupt(id: string): Promise<void> {
    const entry = this.store.need(id);
    this.#writeTo(id, 'interrupt');
    await this.#parts.input.interrupt(entry);
    void this.#runner.wake();
  }

  stop(id: string): Promise<Session> {
    return this.#runner.inTurn(id, async () => {
      this.store.need(id);
      await this.#runner.end(id);
      return this.store.need(id).session;
    });
  }

  restart(id: string, text?: string): Promise<Session> {
    return this.#runner.inTurn(id, async () => {
      const entry = this.store.need(id);
      const { status, backend } = entry.session;
      const isAtRest = ['done', 'idle', 'waiting_for_input'].includes(status);
      const how = isAtRest || text !== undefined ? 'again' : 'revived';
      const event = { type: 'restart' as const, how, text } as const;
      throwRefusal(step(entry, { ...event, at: this.#parts.clock.now() }));
      usable(await this.#parts.backends.find(backend));
      if (!isEnded(entry.session)) await this.#runner.end(id);
      const after = await this.#runner.feed(id, event);
      if (!after) throw notFound(id);
      return after.entry.session;
    });
  }

  /** Starts the server of its worktree, or returns the one that runs. */
  serve(id: string): Promise<DaemonSchema<'SessionServer'>> {
    return this.#servers.serve(id);
  }

  remove(id: string): Promise<DaemonSchema<'SessionDeletion'>> {
    return this.#runner.inTurn(id, async () => {
      const { session, handle } = this.store.need(id);
      await this.#runner.end(id);
      await this.#servers.end(id);
      const { worktree } = session;
      const retained =
        worktree !== null && handle.worktree
          ? await this.#removeWorktree(id, worktree, handle.worktree)
          : { isRetained: false as const };
      await this.store.remove(id);
      rmSync(sessionDirectory(this.#parts.dataDir, id), { recursive: true, force: true });
      return {
        id,
        deleted: true,
        worktree,
        worktree_kept: retained.isRetained,
        reason: retained.isRetained ? retained.reason : null,
      };
    });
  }

  async #removeWorktree(id: string, path: string, mark: WorktreeOrigin) {
    const other = this.store
      .all()
      .find(({ session }) => session.id !== id && isWithin(path, session.workdir));
    const { clock, environment, settings } = this.#parts;
    const git = { clock, environment, runsHooks: settings.values.worktrees.hooks };
    if (!other) return removeWorktree(git, path, mark, () => this.#tearDown(id, path, mark.root));
    return {
      isRetained: true as const,
      reason: `the session ${other.session.id} works in it, too`,
    };
  }

  #tearDown(id: string, worktree: string, root: string): Promise<string | undefined> {
    const { settings, dataDir, clock, variablesFor } = this.#parts;
    const directory = sessionDirectory(dataDir, id);
    const { signal } = new AbortController();
    const environment = { ...variablesFor(''), MILLRACE_AGENT_ID: id };
    const parts = { root, worktree, directory, environment, clock, signal };
    return tearDownWorktree(settings.values, parts);
  }

  async setForceCompact(id: string, state: DaemonSchema<'ForceCompactChoice'>): Promise<Session> {
    const after = await this.#runner.feed(id, { type: 'note', facts: { force_compact: state } });
    if (!after) throw notFound(id);
    return after.entry.session;
  }

  /** A session that works, or was removed meanwhile, is not changed. */
  async setMerged(id: string, isMerged: boolean): Promise<void> {
    await this.#runner.feed(id, { type: 'merged', isMerged });
  }

  /** Compares every context with the limits, which have changed. */
  async updateContextStates(): Promise<void> {
    for (const { session } of this.store.all()) {
      const { context_tokens: tokens, context_window: window } = session;
      const limits = thresholdsFor(this.#parts.settings.values.tokens, window);
      const facts = { context_state: contextState(tokens, limits) };
      await this.#runner.feed(session.id, { type: 'note', facts });
    }
  }

  onChange(listener: (change: SessionChange) => void): () => void {
    return this.store.onChange(listener);
  }

  /** Detaches from running agents; the next daemon adopts them. */
  async close(): Promise<void> {
    await this.#runner.close();
    await this.#parts.pending.settled();
    this.#parts.drivers.acp.close();
    this.#parts.requests.close();
    await this.#parts.drivers.tmux.tidy();
  }

  /** The effect of an input; refuses where none can be written. */
  #writeTo(id: string, kind: InputKind): { keepsPrompt: boolean } {
    const { clock } = this.#parts;
    const next = step(this.store.need(id), { type: 'input', at: clock.now(), kind });
    throwRefusal(next);
    return { keepsPrompt: next.effects.some((each) => each.type === 'write' && each.keepsPrompt) };
  }

  async #written(
    id: string,
    input: Omit<Extract<SessionEvent, { type: 'written' }>, 'type' | 'at'>,
  ): Promise<Session> {
    const after = await this.#runner.feed(id, { type: 'written', ...input });
    void this.#runner.wake();
    if (!after) throw notFound(id);
    return after.entry.session;
  }
}

function throwRefusal({ effects }: Step): void {
  for (const effect of effects) {
    if (effect.type === 'refuse') throw fail('SESSION_STATE', effect.reason);
  }
}

function isWithin(directory: string, path: string): boolean {
  return path === directory || path.startsWith(`${directory}/`);
}
