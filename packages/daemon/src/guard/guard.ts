import type { Timer } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { humanCount, parseTimestamp } from '@millrace/kit/units';
import type { World } from '@millrace/kit/world';
import type { Database } from '@millrace/engine';
import {
  guardStep,
  guardWakesAt,
  isForced,
  thresholdsFor,
  firstGuardState,
  type ContextLimits,
  type GuardAction,
  type GuardRules,
  type Observation,
  type GuardState,
} from '../core/guard.js';
import type { AlertSink } from '../notify/notify.js';
import type { SavingsRecorder } from '../savings/recorder.js';
import type { Session, SessionChange, Sessions } from '../sessions/port.js';

export interface GuardParts extends Pick<World, 'clock' | 'log'> {
  sessions: Pick<Sessions, 'list' | 'find' | 'onChange' | 'send' | 'interrupt'>;
  store: GuardStore;
  alerts: AlertSink;
  /** Undefined when the setting `savings` is off. */
  recorder: Pick<SavingsRecorder, 'recordCompaction'> | undefined;
  rules: GuardRules & ContextLimits;
  /** tokens.force_compact */
  forceCompact: boolean;
  /** tokens.compact_resume_prompt; empty: no prompt is sent. */
  resumePrompt: string;
}

/** Watches the context size of agents, and carries out the decisions of `core/guard.ts`. */
export class ContextGuard {
  /** Unprocessed snapshots per agent; processed one at a time. */
  readonly #pending = new Map<string, (Session | undefined)[]>();
  readonly #work = new Map<string, Promise<void>>();
  readonly #timers = new Map<string, Timer>();
  #stopListening: (() => void) | undefined;
  #isClosed = false;

  constructor(private readonly parts: GuardParts) {}

  /** Subscribes to changes, and checks every agent once. */
  async start(): Promise<void> {
    const { sessions, store } = this.parts;
    this.#stopListening = sessions.onChange(({ before, after }: SessionChange) =>
      this.#enqueue((after ?? before)!.id, after),
    );
    const there = await sessions.list();
    for (const session of there) this.#enqueue(session.id, session);
    const ids = new Set(there.map(({ id }) => id));
    for (const id of store.agents) if (!ids.has(id)) this.#enqueue(id, undefined);
  }

  /** Stops between two steps; the next daemon resumes. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopListening?.();
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    await this.settled();
  }

  /** Resolves when all pending snapshots are processed. */
  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work.values());
  }

  #enqueue(id: string, session: Session | undefined): void {
    if (this.#isClosed) return;
    const pending = this.#pending.get(id);
    if (pending) return void pending.push(session);
    this.#pending.set(id, [session]);
    const work = this.#processPending(id).finally(() => {
      if (this.#work.get(id) === work) this.#work.delete(id);
    });
    this.#work.set(id, work);
  }

  async #processPending(id: string): Promise<void> {
    const pending = this.#pending.get(id)!;
    while (pending.length > 0 && !this.#isClosed) {
      const session = pending.shift();
      try {
        if (session) await this.#process(session, pending.length === 0);
        else await this.#forget(id);
      } catch (error) {
        this.parts.log.error({ err: error, agent: id }, 'context guard failed');
      }
    }
    this.#pending.delete(id);
  }

  async #process(session: Session, isLatest: boolean): Promise<void> {
    const { store, clock } = this.parts;
    const { id } = session;
    const rules = this.#rulesFor(session);
    const before = store.of(id);
    const { state, actions } = guardStep(before, this.#observe(session, isLatest), rules);
    // Alerts before the state is stored: the inbox deduplicates them by crossing number. Actions
    // after it, so that nothing is sent twice after a crash.
    for (const action of actions) if (action.kind === 'alert') await this.#alert(session, action);
    await store.put(id, state);
    for (const action of actions) await this.#act(session, action);
    this.#timers.get(id)?.cancel();
    this.#timers.delete(id);
    const wakesAt = guardWakesAt(state);
    if (wakesAt === undefined || wakesAt <= clock.now() || this.#isClosed) return;
    this.#timers.set(
      id,
      clock.after(wakesAt - clock.now(), () => this.#recheck(id)),
    );
  }

  #recheck(id: string): void {
    this.#timers.delete(id);
    this.parts.sessions.find(id).then(
      (session) => this.#enqueue(id, session),
      (error: unknown) => this.parts.log.error({ err: error, agent: id }, 'context guard failed'),
    );
  }

  async #isGone(id: string): Promise<boolean> {
    const session = await this.parts.sessions.find(id);
    return session === undefined || ['done', 'errored', 'orphaned'].includes(session.status);
  }

  async #forget(id: string): Promise<void> {
    this.#timers.get(id)?.cancel();
    this.#timers.delete(id);
    await this.parts.store.forget(id);
  }

  #rulesFor({ context_window: window }: Session): GuardRules {
    const { rules } = this.parts;
    return { ...rules, ...thresholdsFor(rules, window) };
  }

  #observe(session: Session, isLatest: boolean): Observation {
    return {
      now: this.parts.clock.now(),
      status: session.status,
      statusSince: parseTimestamp(session.status_since),
      tokens: session.context_tokens,
      canSteer: session.driver === 'tmux' && compactCommand(session.backend) !== null,
      force: isForced(session.force_compact, this.parts.forceCompact),
      isLatest,
    };
  }

  async #alert(
    session: Session,
    { level, crossing }: Extract<GuardAction, { kind: 'alert' }>,
  ): Promise<void> {
    const { alerts } = this.parts;
    const rules = this.#rulesFor(session);
    const { id, name, context_tokens: tokens } = session;
    const threshold = level === 'critical' ? rules.critical : rules.warn;
    await alerts.raise(
      {
        kind: level === 'critical' ? 'context_critical' : 'context_warning',
        severity: level,
        title: `The context of ${name} is ${level === 'critical' ? 'critical' : 'large'}`,
        body: `It holds ${humanCount(tokens ?? 0)} tokens; the limit is ${humanCount(threshold)}.`,
        agentId: id,
      },
      { topic: `context_${level}`, value: String(crossing) },
    );
  }

  async #act(session: Session, action: GuardAction): Promise<void> {
    const { sessions, resumePrompt, recorder, log } = this.parts;
    const { id, repo, backend } = session;
    try {
      switch (action.kind) {
        case 'alert':
          return;
        case 'interrupt':
          log.info({ agent: id }, 'interrupting agent with critical context');
          return await sessions.interrupt(id);
        case 'abandon':
          return log.warn({ agent: id }, 'interrupt failed, compacting when idle');
        case 'compact':
          log.info({ agent: id }, 'compacting agent with critical context');
          return void (await sessions.send(id, compactCommand(backend)!));
        case 'resume':
          if (resumePrompt.trim() === '') return;
          return void (await sessions.send(id, resumePrompt));
        case 'saved': {
          const { tokensBefore, tokensAfter } = action;
          await recorder?.recordCompaction({ agentId: id, repo, tokensBefore, tokensAfter });
        }
      }
    } catch (error) {
      // A failed action does not stop the others; the agent's next snapshot shows its effect.
      const fields = { err: error, agent: id, action: action.kind };
      if (error instanceof Refusal) log.warn(fields, 'context guard action refused');
      else if (await this.#isGone(id)) log.info(fields, 'agent ended during guard action');
      else log.error(fields, 'context guard failed');
    }
  }
}

const collection = 'guard';

/** Guard state per agent, on disk and cached in memory. */
export class GuardStore {
  private constructor(
    private readonly database: Database,
    private readonly states: Map<string, GuardState>,
  ) {}

  static async open(database: Database): Promise<GuardStore> {
    const states = new Map<string, GuardState>();
    for await (const { key, data } of database.collection<GuardState>(collection).stream()) {
      states.set(key, data);
    }
    return new GuardStore(database, states);
  }

  get agents(): string[] {
    return [...this.states.keys()];
  }

  of(id: string): GuardState {
    return this.states.get(id) ?? firstGuardState;
  }

  async put(id: string, state: GuardState): Promise<void> {
    if (state === this.of(id)) return;
    await this.database.collection<GuardState>(collection).upsert(id, state);
    this.states.set(id, state);
  }

  async forget(id: string): Promise<void> {
    if (!this.states.has(id)) return;
    await this.database.collection<GuardState>(collection).deleteByKey(id);
    this.states.delete(id);
  }
}

/**
 * Compact command of each CLI. Null: it has none that works when typed, so the guard only raises
 * alerts for its agents.
 */
const commands: Readonly<Record<string, string | null>> = {
  claude: '/compact',
  codex: '/compact',
  gemini: '/compress',
  agy: null,
  'cursor-agent': '/compress',
  opencode: '/compact',
  qwen: '/compress',
  copilot: '/compact',
  // Hands over to a new thread instead.
  amp: null,
  droid: '/compress',
  // Summarizes automatically.
  aider: null,
  goose: '/compact',
  // A slash opens its command palette, which does not accept pasted text.
  crush: null,
  kimi: '/compact',
  auggie: null,
  'kiro-cli': '/compact',
};

/** CLIs from the config default to the most common command. */
export function compactCommand(backend: string): string | null {
  const known = Object.hasOwn(commands, backend) ? commands[backend] : undefined;
  return known === undefined ? '/compact' : known;
}

export interface GuardSettings {
  guard: boolean;
  warn: number;
  critical: number;
  warn_pct: number;
  critical_pct: number;
  warn_alert: boolean;
  auto_compact: boolean;
  force_compact: boolean;
  compact_resume_prompt: string;
}

export interface GuardOptions extends Pick<
  GuardParts,
  'clock' | 'log' | 'sessions' | 'alerts' | 'recorder'
> {
  settings: GuardSettings;
  database: Database;
}

export interface OpenGuard {
  close(): Promise<void>;
}

/** Starts guarding contexts; with `tokens.guard` off it does nothing. */
export async function openGuard({
  settings,
  database,
  ...parts
}: GuardOptions): Promise<OpenGuard> {
  if (!settings.guard) return { close: async () => {} };
  const guard = new ContextGuard({
    ...parts,
    store: await GuardStore.open(database),
    rules: {
      ...settings,
      alerts: settings.warn_alert,
      autoCompact: settings.auto_compact,
    },
    forceCompact: settings.force_compact,
    resumePrompt: settings.compact_resume_prompt,
  });
  await guard.start();
  return { close: () => guard.close() };
}
