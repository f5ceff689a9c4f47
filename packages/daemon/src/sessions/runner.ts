import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import { starting, withFacts, withStatus, type Entry } from '../core/session.js';
import type { Backends } from '../registry/backends.js';
import type { SessionStore } from './session-store.js';
import {
  acpFlags,
  askingModes,
  usesPermissionTool,
  canResume,
  mayRequestTrust,
  optionalFlags,
  prepareRun,
  takesSessionId,
  type ExtraCli,
  type PreparedRun,
} from './cli/command-lines.js';
import type { AcpSources } from './cli/acp-sources.js';
import type { Driver, Launch } from './drivers/driver.js';
import type { OfferedFlags } from './cli/offered-flags.js';
import { OutputLog, sessionDirectory } from './drivers/session-files.js';
import type { PermissionRequests } from './drivers/permission-requests.js';
import { endFamily, isSameProcess } from './drivers/processes.js';
import type { Session } from './port.js';

export interface RunnerParts {
  store: SessionStore;
  backends: Backends;
  clock: Clock;
  random: Random;
  log: Log;
  dataDir: string;
  /** Environment variables of a backend's program. */
  variablesFor: (backend: string) => Record<string, string>;
  extra: readonly ExtraCli[];
  /** `agents.trust_workspace`: backends whose own trust check is skipped. */
  trusted: readonly string[];
  driverOf: (session: Session) => Driver;
  acp: Pick<AcpSources, 'find'>;
  flags: OfferedFlags;
  requests: PermissionRequests;
  /** Prompt sent when a crashed agent is resumed. */
  resumePrompt: () => string;
  /** Is there something of the backend's own session that can be resumed? */
  hasTranscript: (entry: Entry) => Promise<boolean>;
  /** Called after an agent was started. */
  onStart: () => void;
}

/** First start, restart on request, or restart after a crash. */
export type StartKind = 'first' | 'again' | 'revived';

/** Starts and ends the processes of agents. */
export class Runner {
  readonly #parts: RunnerParts;
  readonly #starting = new Map<string, Promise<void>>();
  readonly #flags: OfferedFlags;

  constructor(parts: RunnerParts) {
    this.#parts = parts;
    this.#flags = parts.flags;
  }

  isStarting(id: string): boolean {
    return this.#starting.has(id);
  }

  /** Resolves when no start is under way. */
  async settled(): Promise<void> {
    await Promise.all(this.#starting.values());
  }

  /** Starts the agent of a stored session; errors are recorded in the session. */
  start(id: string, how: StartKind): Promise<void> {
    const start = this.#start(id, how)
      .catch(async (error: unknown) => {
        this.#parts.log.error({ err: error, session: id }, 'failed to start session');
        await this.#failed(id, 'internal error, see the daemon log');
      })
      .finally(() => {
        this.#starting.delete(id);
        this.#parts.onStart();
      });
    this.#starting.set(id, start);
    return start;
  }

  async #start(id: string, how: StartKind): Promise<void> {
    const { store, backends, extra } = this.#parts;
    const entry = store.get(id);
    if (!entry) return;
    const { session, handle } = entry;
    if (session.driver === 'acp') return this.#startAcp(entry, how);
    const { binary_path: file } = await backends.find(session.backend);
    const trouble = await obstacle(file, session.workdir);
    if (trouble !== undefined) return this.#failed(id, trouble);
    const variables = this.#parts.variablesFor(session.backend);
    const offered = await this.#flags.among(file, optionalFlags(handle.cli), variables);
    const own = await this.#ownSession(entry, offered);
    const prompt = this.#promptFor(session, how, own?.isThere ?? false);
    const isAsking = session.driver === 'headless' && usesPermissionTool(handle.cli);
    const prepared = prepareRun(session.backend, extra, {
      cli: handle.cli,
      driver: session.driver,
      prompt,
      model: handle.model,
      session: own,
      offered,
      isTrusted: this.#isTrusted(entry),
      permissionFlags: isAsking ? this.#parts.requests.prepare(id) : [],
    });
    if ('impossible' in prepared) return this.#failed(id, prepared.impossible);
    const marked = await this.#mark(id, own?.id ?? null, prepared);
    if (marked) await this.#launch(marked, file, prepared, prompt !== undefined);
  }

  /** Agents over ACP get their prompt from their host, and open or continue their own session. */
  async #startAcp({ session, handle }: Entry, how: StartKind): Promise<void> {
    const { backends, acp, resumePrompt } = this.#parts;
    const { id, backend_session_id: own } = session;
    const source = await acp.find(await backends.find(session.backend), { isRequested: true });
    if (!source) return this.#failed(id, 'its backend does not speak ACP any more');
    const [file = '', ...args] = source.command;
    const trouble = await obstacle(file, session.workdir);
    if (trouble !== undefined) return this.#failed(id, trouble);
    const more = source.via === 'native' ? await this.#acpArgs(session, handle, file) : [];
    const isModelArgument = more.includes(handle.model ?? '');
    const prepared = { args: [...args, ...more], input: '', paste: undefined, format: acpFormat };
    const marked = await this.#mark(id, own, prepared);
    if (!marked) return;
    await this.#launch(marked, file, prepared, false, {
      resume: how === 'first' ? null : own,
      prompt: session.prompt,
      resumePrompt: how === 'revived' ? resumePrompt() : null,
      model: isModelArgument ? null : handle.model,
      mode: handle.mode ?? null,
      modeInstead: askingModes(handle.cli),
    });
  }

  /** Flags for a command line that supports ACP itself. */
  async #acpArgs(session: Session, handle: Entry['handle'], file: string): Promise<string[]> {
    const flags = acpFlags(handle.cli);
    const variables = this.#parts.variablesFor(session.backend);
    const wanted = Object.values(flags).filter((flag) => flag !== undefined);
    const offered = await this.#flags.among(file, wanted, variables);
    const { model, skipTrust } = flags;
    const isModel = model !== undefined && handle.model !== null && offered.has(model);
    const isTrusted = skipTrust !== undefined && offered.has(skipTrust);
    return [
      ...(isTrusted && this.#isTrusted({ session, handle }) ? [skipTrust] : []),
      ...(isModel ? [model, handle.model!] : []),
    ];
  }

  async #mark(id: string, own: string | null, { paste, format }: PreparedRun) {
    const { store, clock, dataDir } = this.#parts;
    const now = clock.now();
    const outputStart = new OutputLog(sessionDirectory(dataDir, id)).end();
    return store.change(id, (before) => ({
      session: withFacts(before.session, { backend_session_id: own }, now),
      handle: {
        ...before.handle,
        starts: before.handle.starts + 1,
        startedAt: now,
        inputAt: now,
        startMark: null,
        isPromptPending: paste !== undefined,
        isStopping: false,
        restartAt: null,
        format,
        outputStart,
      },
    }));
  }

  async #launch(
    { session, handle }: Entry,
    file: string,
    { args, input, paste }: PreparedRun,
    hasPrompt: boolean,
    acp?: Launch['acp'],
  ): Promise<void> {
    const { store, clock, dataDir, variablesFor } = this.#parts;
    const { id, backend, workdir: cwd } = session;
    const started = await this.#parts.driverOf(session).start({
      id,
      directory: sessionDirectory(dataDir, id),
      token: handle.token,
      file,
      args,
      input,
      cwd,
      environment: agentEnvironment(variablesFor(backend), { id, dataDir, cwd }),
      acp,
    });
    if ('failure' in started) return this.#failed(id, started.failure);
    const isAtWork = hasPrompt && paste === undefined;
    await store.change(id, (before) => {
      const now = clock.now();
      const running = withFacts(before.session, { pid: started.pid }, now);
      return {
        session: isAtWork
          ? withStatus(running, 'working', 'it was given its prompt', now)
          : running,
        handle: { ...before.handle, startMark: started.startMark },
      };
    });
  }

  /** The backend's own session: the one to resume, or the id for a new one. */
  async #ownSession(
    entry: Entry,
    offered: ReadonlySet<string>,
  ): Promise<{ id: string; isThere: boolean } | undefined> {
    const { session, handle } = entry;
    const { backend_session_id: id } = session;
    const { driver } = session;
    if (driver === 'acp') return undefined;
    const mayResume = id !== null && canResume(handle.cli, driver);
    if (mayResume && (await this.#parts.hasTranscript(entry))) return { id, isThere: true };
    if (!takesSessionId(handle.cli, offered)) return undefined;
    const { cli } = handle;
    if (mayRequestTrust({ cli, driver, offered, isTrusted: this.#isTrusted(entry) }))
      return undefined;
    return { id: uuidFrom(this.#parts.random.bytes(16)), isThere: false };
  }

  /** Only workspaces that this daemon made, or that the caller named. */
  #isTrusted({ session, handle }: Entry): boolean {
    const isChosen = session.worktree !== null || handle.isWorkspaceNamed === true;
    return isChosen && this.#parts.trusted.includes(session.backend);
  }

  /** The prompt of this start. An idle agent is resumed without one. */
  #promptFor(session: Session, how: StartKind, isResumed: boolean): string | undefined {
    if (how === 'first' || !isResumed) return session.prompt;
    if (how === 'revived') return this.#parts.resumePrompt();
    return session.driver === 'headless' ? session.prompt : undefined;
  }

  async #failed(id: string, reason: string): Promise<void> {
    const { store, clock } = this.#parts;
    await store.change(id, ({ session, handle }) => {
      const now = clock.now();
      const failed = withFacts(session, { pid: null, last_error: reason }, now);
      return { handle, session: withStatus(failed, 'errored', `it did not start: ${reason}`, now) };
    });
  }

  /** Ends the agent's process and all its descendants. Resolves when they have ended. */
  async end(id: string): Promise<void> {
    const { store, clock } = this.#parts;
    await this.#starting.get(id);
    const entry = await store.change(id, ({ session, handle }) => ({
      session,
      handle: { ...handle, isStopping: true, restartAt: null },
    }));
    if (!entry) return;
    const { session, handle } = entry;
    // The pid may have been reused.
    const isOurs = session.pid !== null && handle.startMark !== null;
    if (isOurs && (await isSameProcess(session.pid!, handle.startMark!))) {
      await this.#cancelTurn(session);
      await endFamily(session.pid!, clock);
    }
  }

  async #cancelTurn(session: Session): Promise<void> {
    const { driverOf, log } = this.#parts;
    try {
      await driverOf(session).cancelTurn?.(session.id);
    } catch (error) {
      // Its process is ended all the same.
      log.warn({ err: error, session: session.id }, 'failed to cancel turn');
    }
  }

  /** Releases the driver's resources of it. */
  async release(session: Session): Promise<void> {
    await this.#parts.driverOf(session).release(session.id);
  }

  /** Puts a session back to the beginning, to be started again. */
  async rewind(id: string, reason: string, isRequested: boolean): Promise<Entry | undefined> {
    const { store, clock } = this.#parts;
    return store.change(id, ({ session, handle }) => ({
      session: {
        ...starting(session, reason, clock.now()),
        restart_count: session.restart_count + 1,
      },
      handle: {
        ...handle,
        // Before the start there is no process to inspect.
        startMark: null,
        isStopping: false,
        restartAt: null,
        autoRestarts: isRequested ? 0 : handle.autoRestarts + 1,
      },
    }));
  }
}

const acpFormat = 'acp-json' as const;

async function obstacle(file: string, cwd: string): Promise<string | undefined> {
  const isProgram = await access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!isProgram) return 'the program is gone; run `ctl backend rescan`';
  const facts = await stat(cwd).catch(() => undefined);
  return facts?.isDirectory() ? undefined : 'the directory to work in is gone';
}

/** RFC 9562, version 4. */
function uuidFrom(bytes: Uint8Array): string {
  const own = Uint8Array.from(bytes);
  own[6] = (own[6]! & 0x0f) | 0x40;
  own[8] = (own[8]! & 0x3f) | 0x80;
  const hex = Buffer.from(own).toString('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** The environment of an agent: the variables of its backend, and its session id for `ctl`. */
export function agentEnvironment(
  variables: Readonly<Record<string, string>>,
  { id, dataDir, cwd }: { id: string; dataDir: string; cwd: string },
): Record<string, string> {
  return { ...variables, PWD: cwd, MILLRACE_AGENT_ID: id, MILLRACE_DATA_DIR: dataDir };
}
