import { mkdirSync, rmSync } from 'node:fs';
import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Database } from '@millrace/db';
import type { World } from '@millrace/kit/world';
import { fail } from '../core/refusals.js';
import { isEnded, withFacts, withStatus } from '../core/session.js';
import type { PolicyRule } from '../questions/policy.js';
import type { StoredQuestion } from '../questions/question.js';
import type { Questions } from '../questions/questions.js';
import type { Backends } from '../registry/backends.js';
import { adopt } from './adoption.js';
import { Asking, notTaken } from './asking.js';
import { SessionBook } from './book.js';
import type { EvidenceParts } from './evidence.js';
import type { Entry, Handle, WorktreeMark } from './handle.js';
import { HeadlessDriver } from './headless.js';
import { readOutput } from './output.js';
import { isFullScreen, screenOutput } from './screen-output.js';
import { OutputLog } from './output-log.js';
import { sessionDirectory, sessionsDirectory } from './places.js';
import type { Session, SessionChange, Sessions, SpawnOrigin, SpawnRequest } from './port.js';
import { Restarts } from './restarts.js';
import { Runner } from './runner.js';
import { Spawner, type SpawnerParts } from './spawner.js';
import { invalid, usable } from './spawning.js';
import { Talk } from './talk.js';
import { TmuxDriver } from './tmux.js';
import { placesOf } from './transcript-tail.js';
import { findTranscript } from './transcript-watch.js';
import { Turns } from './turns.js';
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
  /** `permissions.policy`. */
  policy: readonly PolicyRule[];
  limitRetryMs: number;
  contextLimits: EvidenceParts['contextLimits'];
  /** Prompt sent when a crashed agent is resumed. */
  resumePrompt: string;
  budget: SpawnerParts['budget'];
  /** `worktrees.hooks`: whether hooks and filters of repositories run. */
  runsHooks: boolean;
  /** What the program of a backend gets in its environment. */
  variablesFor: (backend: string) => Record<string, string>;
}

/** The agents that this daemon runs. */
export class AgentSessions implements Sessions {
  readonly #parts: SessionsParts;
  readonly #book: SessionBook;
  readonly #tmux: TmuxDriver;
  readonly #talk: Talk;
  readonly #runner: Runner;
  readonly #watch: Watch;
  readonly #restarts: Restarts;
  readonly #spawner: Spawner;
  readonly #asking: Asking;
  /** Of what starts and ends the agent of a session, one after the other. */
  readonly #turns = new Turns();
  /** Agents that are being told their first prompt. */
  readonly #prompting = new Map<string, Promise<void>>();

  private constructor(parts: SessionsParts, book: SessionBook) {
    this.#parts = parts;
    this.#book = book;
    const headless = new HeadlessDriver(() => void this.#watch.wake());
    this.#tmux = new TmuxDriver(parts);
    this.#talk = new Talk({ clock: parts.clock, driver: this.#tmux });
    const transcripts = {
      places: placesOf(parts.environment),
      taken: (id: string) => this.#ownSessions(id),
    };
    this.#runner = new Runner({
      ...parts,
      book,
      driverOf: ({ driver }) => (driver === 'tmux' ? this.#tmux : headless),
      hasTranscript: async (entry) => (await findTranscript(transcripts, entry)) !== undefined,
      onStart: () => void this.#watch.wake(),
    });
    this.#restarts = new Restarts({
      ...parts,
      book,
      revive: (id) => this.#turns.in(id, () => this.#revive(id)),
    });
    const answer = (stored: StoredQuestion, text: string) => this.answer(stored, text);
    this.#asking = new Asking({ ...parts, book, answer });
    this.#watch = new Watch({
      ...parts,
      ...transcripts,
      book,
      drivers: [headless, this.#tmux],
      isStarting: (id) => this.#runner.isStarting(id),
      onDialog: (entry, dialog) => this.#asking.observe(entry, dialog),
      onReady: (id) => this.#prompt(id),
      onEnd: (id) => this.#restarts.plan(id),
    });
    this.#spawner = new Spawner({
      ...parts,
      book,
      start: (id) => void this.#runner.start(id, 'first'),
    });
  }

  static async open(parts: SessionsParts): Promise<AgentSessions> {
    mkdirSync(sessionsDirectory(parts.dataDir), { recursive: true, mode: 0o700 });
    return new AgentSessions(parts, await SessionBook.open(parts.database, parts.log));
  }

  /**
   * Adopts the agents that the previous daemon left running, and starts to watch them. Listeners
   * must be registered before.
   */
  async begin(): Promise<void> {
    const isStarting = (id: string) => this.#runner.isStarting(id);
    await adopt({ ...this.#parts, book: this.#book, keeper: this.#tmux, isStarting });
    await this.#asking.begin();
    await this.#watch.wake();
    for (const { session, handle } of this.#book.all()) {
      // The daemon before this one was ending it.
      if (handle.isStopping && !isEnded(session)) this.#finishStop(session.id);
      // What ended before its end could be followed by anything.
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
    return Promise.resolve(this.#book.all().map(({ session }) => session));
  }

  find(id: string): Promise<Session | undefined> {
    return Promise.resolve(this.#book.get(id)?.session);
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

  async send(id: string, text: string): Promise<Session> {
    const { session, handle } = this.#talkative(id);
    if (text.includes('\0')) throw invalid('text', 'holds a NUL, which no agent takes');
    if (session.status === 'spawning') {
      throw fail('SESSION_STATE', 'The session is still spawning: wait until it works.');
    }
    const inputAt = this.#parts.clock.now();
    const isTaken = await this.#talk.say(id, handle.cli, text).catch(async (error: unknown) => {
      // Most likely it has ended meanwhile, which is no fault of ours.
      await this.#watch.wake();
      this.#talkative(id);
      throw error;
    });
    if (!isTaken) {
      throw fail(
        'SESSION_STATE',
        'The agent did not take the text. Open its terminal with `ctl agent attach`.',
      );
    }
    // An answer to a first-run dialog, such as for trust, leaves the first prompt to be sent.
    const isPromptPending = handle.isPromptPending && session.status === 'waiting_for_input';
    return this.#atWork(id, { inputAt, isPromptPending }, 'it was sent input');
  }

  async answer({ question }: StoredQuestion, answer: string): Promise<'taken' | 'gone'> {
    const { session_id: id } = question;
    const { session, handle } = this.#talkative(id);
    const inputAt = this.#parts.clock.now();
    if (question.kind === 'text') {
      await this.send(id, answer);
      return 'taken';
    }
    const outcome = await this.#talk.choose(id, handle.cli, question, answer);
    if (outcome === 'stuck') throw notTaken();
    if (outcome === 'gone') return outcome;
    const isPromptPending = handle.isPromptPending && session.status !== 'idle';
    await this.#atWork(id, { inputAt, isPromptPending }, 'its question was answered');
    return outcome;
  }

  async interrupt(id: string): Promise<void> {
    this.#talkative(id);
    await this.#talk.interrupt(id);
    void this.#watch.wake();
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
    await this.#book.remove(id);
    rmSync(sessionDirectory(this.#parts.dataDir, id), { recursive: true, force: true });
    return {
      id,
      deleted: true,
      worktree,
      worktree_kept: retained.isRetained,
      reason: retained.isRetained ? retained.reason : null,
    };
  }

  async #removeWorktree(id: string, path: string, mark: WorktreeMark) {
    const other = this.#book
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
    const entry = await this.#book.change(id, ({ session, handle }) => ({
      handle,
      session: withFacts(session, { force_compact: state }, this.#parts.clock.now()),
    }));
    if (!entry) throw notFound(id);
    return entry.session;
  }

  onChange(listener: (change: SessionChange) => void): () => void {
    return this.#book.onChange(listener);
  }

  /** Lets go of the agents, which run on for the next daemon. */
  async close(): Promise<void> {
    this.#restarts.close();
    await this.#runner.settled();
    await this.#watch.close();
    await Promise.all(this.#prompting.values());
    await this.#asking.settled();
    await this.#tmux.tidy();
  }

  async #end(id: string): Promise<void> {
    await this.#runner.end(id);
    await this.#watch.wake();
    const entry = this.#book.get(id);
    if (!entry || isEnded(entry.session)) return;
    // Its process is gone, and tmux does not say so yet: a stop was requested, so it has ended.
    await this.#runner.release(entry.session);
    await this.#book.change(id, ({ session, handle }) => {
      const now = this.#parts.clock.now();
      const over = withFacts(session, { pid: null }, now);
      return { handle, session: withStatus(over, 'done', 'it was stopped', now) };
    });
  }

  async #noRestart(id: string): Promise<void> {
    await this.#book.change(id, ({ session, handle }) => ({
      session,
      handle: { ...handle, isStopping: true, restartAt: null },
    }));
  }

  /** Starts an agent again that has ended by itself. */
  async #revive(id: string): Promise<void> {
    const entry = this.#book.get(id);
    if (!entry || entry.handle.restartAt === null || !isEnded(entry.session)) return;
    await this.#runner.rewind(id, 'it is restarted by itself', false);
    await this.#runner.start(id, 'revived');
  }

  /** Tells an agent its first prompt, which it could not be given at its start. */
  #prompt(id: string): void {
    if (this.#prompting.has(id)) return;
    const work = this.#sendPrompt(id)
      .catch((error: unknown) => {
        this.#parts.log.warn({ err: error, session: id }, 'failed to send prompt');
      })
      .finally(() => this.#prompting.delete(id));
    this.#prompting.set(id, work);
  }

  async #sendPrompt(id: string): Promise<void> {
    const entry = this.#book.get(id);
    if (!entry?.handle.isPromptPending || isEnded(entry.session)) return;
    const { session, handle } = entry;
    const inputAt = this.#parts.clock.now();
    const isTaken = await this.#talk.say(id, handle.cli, session.prompt);
    if (!isTaken) await this.#note(id, 'its prompt was typed, but nothing shows that it was taken');
    await this.#atWork(id, { inputAt, isPromptPending: false }, 'it was given its prompt');
  }

  async #note(id: string, trouble: string): Promise<void> {
    await this.#book.change(id, ({ session, handle }) => ({
      session: withFacts(session, { last_error: trouble }, this.#parts.clock.now()),
      handle,
    }));
  }

  async #atWork(
    id: string,
    input: Pick<Handle, 'inputAt' | 'isPromptPending'>,
    reason: string,
  ): Promise<Session> {
    const entry = await this.#book.change(id, ({ session, handle }) => ({
      session: isEnded(session) ? session : working(session, reason, this.#parts.clock.now()),
      handle: { ...handle, ...input },
    }));
    void this.#watch.wake();
    if (!entry) throw notFound(id);
    return entry.session;
  }

  /** The backend's own sessions of all agents but one. */
  #ownSessions(but: string): Set<string> {
    const others = this.#book.all().filter(({ session }) => session.id !== but);
    return new Set(others.map(({ session }) => session.backend_session_id ?? ''));
  }

  #entry(id: string): Entry {
    const entry = this.#book.get(id);
    if (!entry) throw notFound(id);
    return entry;
  }

  /** The session, if it is one that can be typed into. */
  #talkative(id: string): Entry {
    const entry = this.#entry(id);
    const { session } = entry;
    if (isEnded(session)) {
      throw fail('SESSION_STATE', `The session has ended (${session.status}): restart it first.`);
    }
    if (session.driver === 'headless') {
      throw fail('SESSION_STATE', 'The session is a headless run, which takes no input.');
    }
    return entry;
  }
}

function working(session: Session, reason: string, now: number): Session {
  const fresh = session.turn_error ? { ...session, turn_error: null } : session;
  return withStatus(fresh, 'working', reason, now);
}

function isWithin(directory: string, path: string): boolean {
  return path === directory || path.startsWith(`${directory}/`);
}

function notFound(id: string): Error {
  return fail(
    'SESSION_NOT_FOUND',
    `There is no session "${id.slice(0, 64)}": GET /api/v1/sessions lists them.`,
  );
}
