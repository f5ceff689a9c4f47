import type { Timer } from '@millrace/kit/clock';
import { humanDuration, parseTimestamp } from '@millrace/kit/units';
import type { World } from '@millrace/kit/world';
import { isFromCall, isFromPlan, type StoredQuestion } from '../questions/question.js';
import type { Questions } from '../questions/questions.js';
import type { Session, SessionChange, Sessions } from '../sessions/port.js';
import type { Alert, AlertSink, Once } from './alert-store.js';

export interface SessionAlertsParts extends Pick<World, 'clock' | 'log'> {
  sessions: Pick<Sessions, 'list' | 'find' | 'onChange'>;
  questions: Pick<Questions, 'openOf' | 'onAdded'>;
  alerts: AlertSink;
  /** Called when a session was deleted. */
  deleteMarks: (agentId: string) => Promise<void>;
  /** Idle time of an agent before an alert. */
  stuckAfterMs: number;
}

/** Raises an alert each time an agent needs attention. */
export class SessionAlerts {
  readonly #stuck = new Map<string, Timer>();
  #stopListening: (() => void)[] = [];
  #work: Promise<void> = Promise.resolve();

  constructor(private readonly parts: SessionAlertsParts) {}

  /** Subscribes to changes, and checks what happened while the daemon was down. */
  async start(): Promise<void> {
    const { sessions, questions } = this.parts;
    this.#stopListening = [
      sessions.onChange((change) => this.#handleChange(change)),
      questions.onAdded((added) => this.#handleQuestion(added)),
    ];
    for (const after of await sessions.list()) {
      this.#handleChange({ before: undefined, after });
      for (const each of questions.openOf(after.id)) this.#handleQuestion(each);
    }
    await this.settled();
  }

  async close(): Promise<void> {
    for (const stop of this.#stopListening) stop();
    for (const timer of this.#stuck.values()) timer.cancel();
    this.#stuck.clear();
    await this.settled();
  }

  /** Resolves when all received changes are processed. */
  settled(): Promise<void> {
    return this.#work;
  }

  #handleChange({ before, after }: SessionChange): void {
    if (!after) {
      if (!before) return;
      this.#awaitNothing(before.id);
      this.#do(() => this.parts.deleteMarks(before.id));
      return;
    }
    if (before?.status === after.status && before.status_since === after.status_since) return;
    this.#awaitNothing(after.id);
    if (after.status === 'idle') this.#awaitStuck(after);
    const alert = alertOf(after);
    if (!alert) return;
    const once: Once = { topic: 'status', value: `${after.status} ${after.status_since}` };
    const open = after.status === 'waiting_for_input' ? this.parts.questions.openOf(after.id) : [];
    // The latest is the one it waits for.
    const latest = open.pop()?.question.id;
    if (latest === undefined) return this.#do(() => this.parts.alerts.raise(alert, once));
    for (const each of open) this.#handleQuestion(each);
    const keys = [questionKey(latest)];
    this.#do(() => this.parts.alerts.raise({ ...alert, questionId: latest }, { ...once, keys }));
  }

  /** A question of which no change of the agent tells. */
  #handleQuestion({ question: { id, session_id: agentId, title }, ref }: StoredQuestion): void {
    const { sessions, questions, alerts } = this.parts;
    this.#do(async () => {
      const session = await sessions.find(agentId);
      const isOpen = questions.openOf(agentId).some(({ question }) => question.id === id);
      const isReported =
        session?.status !== 'waiting_for_input' && !isFromCall(ref) && !isFromPlan(ref);
      if (!session || !isOpen || isReported) return;
      const alert = { severity: 'warning', title: waitsForInput(session), body: title } as const;
      await alerts.raise(
        { kind: 'waiting_for_input', ...alert, agentId, questionId: id },
        { topic: 'question', value: id, keys: [questionKey(id)] },
      );
    });
  }

  #awaitStuck({ id, status_since }: Session): void {
    const { clock, stuckAfterMs } = this.parts;
    const leftMs = parseTimestamp(status_since) + stuckAfterMs - clock.now();
    const timer = clock.after(Math.max(0, leftMs), () => {
      this.#stuck.delete(id);
      this.#do(() => this.#alertStuck(id, status_since));
    });
    this.#stuck.set(id, timer);
  }

  #awaitNothing(id: string): void {
    this.#stuck.get(id)?.cancel();
    this.#stuck.delete(id);
  }

  async #alertStuck(id: string, since: string): Promise<void> {
    const session = await this.parts.sessions.find(id);
    if (session?.status !== 'idle' || session.status_since !== since) return;
    const alert: Alert = {
      kind: 'stuck_idle',
      severity: 'warning',
      title: `${session.name} has been idle for ${humanDuration(this.parts.stuckAfterMs)}`,
      body: 'Nothing happened since its last turn. Send it a prompt, or stop it.',
      agentId: id,
    };
    await this.parts.alerts.raise(alert, { topic: 'stuck_idle', value: since });
  }

  #do(run: () => Promise<void>): void {
    this.#work = this.#work.then(run).catch((error: unknown) => {
      this.parts.log.error({ err: error }, 'failed to raise alert');
    });
  }
}

function questionKey(id: string): string {
  return `question ${id}`;
}

function waitsForInput({ name }: Session): string {
  return `${name} waits for input`;
}

function alertOf(session: Session): Alert | undefined {
  const { id: agentId, name, status, status_reason: reason, last_error: error } = session;
  const critical = { severity: 'critical', agentId } as const;
  switch (status) {
    case 'waiting_for_input': {
      const title = waitsForInput(session);
      return { kind: status, severity: 'warning', title, body: reason ?? '', agentId };
    }
    case 'errored':
      return { kind: status, title: `${name} failed`, body: error ?? reason ?? '', ...critical };
    case 'orphaned': {
      const body = reason ?? error ?? 'Its process was gone when the daemon restarted.';
      return { kind: status, title: `${name} was lost`, body, ...critical };
    }
    default:
      return undefined;
  }
}
