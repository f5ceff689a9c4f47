import { isSampled, readTraceparent, spanIdOf, type Tracer } from '@millrace/kit/tracing';
import type { Clock } from '@millrace/kit/clock';
import type { Session, Sessions } from '../sessions/port.js';
import { phaseOf } from '../core/session.js';
import { tailOf } from '../sessions/answer.js';

/** The report to the queue when a task's session has ended. */
export type Report =
  | { kind: 'complete'; result?: TaskResult }
  | {
      kind: 'fail';
      error_type: string;
      message: string;
      retry: boolean;
      /** The attempt does not count. */
      defer?: boolean;
      retry_after_ms?: number;
    };

/** The result of a task: its session and the end of the agent's output. */
export type TaskResult = Pick<Session, 'backend' | 'model' | 'branch'> & {
  session_id: string;
  /** The last answer of the agent, or the end of its output. */
  output: string;
  /** At the exact prices of its models; null when it is unknown. */
  exact_usd: number | null;
};

/** The queue takes 64 KiB of JSON, in which a character may take more than in the text. */
const maxOutputBytes = 16_384;
/** The queue stores at most this much of a message, from its start. */
const maxMessageBytes = 1_024;
const maxReasonBytes = 256;
/** Assumed duration of a limit without a known reset time. */
const defaultLimitMs = 15 * 60_000;

export interface Work {
  /** The end of the output. */
  said: string;
  answer?: string | undefined;
  exactUsd?: number | null;
}

/** The report on a session; undefined while it is running. */
export function reportOf(session: Session, work: Work, now: number): Report | undefined {
  const { said } = work;
  switch (phaseOf(session)) {
    case 'works':
    case 'waits':
      return undefined;
    case 'done':
      return { kind: 'complete', result: resultOf(session, work) };
    case 'limited':
      return {
        ...failure('RATE_LIMITED', session.last_error ?? 'the provider limits requests', said),
        defer: true,
        retry_after_ms: limitMs(session, now),
      };
    case 'stopped':
      // A user stopped it, so it must not be retried.
      return { ...failure('AGENT_STOPPED', 'the session was stopped', said), retry: false };
    case 'failed': {
      const { last_error, status_reason, status } = session;
      const type = status === 'orphaned' ? 'AGENT_LOST' : 'AGENT_FAILED';
      return failure(type, last_error ?? status_reason ?? `the session is ${status}`, said);
    }
  }
}

function resultOf({ id, backend, model, branch }: Session, work: Work): TaskResult {
  const { said, answer = said, exactUsd = null } = work;
  const output = tailOf(answer, maxOutputBytes);
  return { session_id: id, backend, model, branch, output, exact_usd: exactUsd };
}

export const deletedReport: Report = {
  ...failure('AGENT_STOPPED', 'the session was deleted', ''),
  retry: false,
};

/** The reason in one line, followed by as much of the output before it as fits. */
function failure(error_type: string, reason: string, said: string): Report & { kind: 'fail' } {
  const whole = oneLine(reason);
  const head = tailOf(whole, maxReasonBytes);
  const room = maxMessageBytes - Buffer.byteLength(head) - 1;
  const message = `${head}\n${tailOf(withoutEnd(said, whole), room)}`.trim();
  return { kind: 'fail', error_type, message, retry: true };
}

/** The reason is often the last that the agent said: it is not said twice. */
function withoutEnd(said: string, reason: string): string {
  const lines = said.trimEnd().split('\n');
  for (let count = 1; count <= lines.length; count++) {
    const end = oneLine(lines.slice(-count).join(' '));
    if (end === reason) return lines.slice(0, -count).join('\n');
    if (end.length > reason.length) break;
  }
  return said;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

function limitMs({ limited_until }: Session, now: number): number {
  const until = limited_until === null ? Number.NaN : Date.parse(limited_until);
  return Number.isNaN(until) ? defaultLimitMs : Math.max(0, until - now);
}

interface Traced {
  readonly traceId: string;
  readonly parentSpanId: string;
  readonly startMs: number;
  tool?: { readonly name: string; readonly startMs: number } | undefined;
  toolCount: number;
}

/** How the status of a session names the tool in use. */
const toolPattern = /^it uses the tool (.+)$/;

/** Records a span for each agent that works on a task, and one for each tool that it uses. */
export class AgentTraces {
  readonly #traced = new Map<string, Traced>();
  readonly #stopListening: () => void;

  constructor(private readonly parts: { tracer: Tracer; sessions: Sessions; clock: Clock }) {
    this.#stopListening = parts.sessions.onChange(({ after }) => {
      if (after) this.#changed(after);
    });
  }

  /** Starts the span of a session in the trace of its delivery. */
  async begin(sessionId: string, traceparent: string | undefined): Promise<void> {
    const parent = readTraceparent(traceparent ?? '');
    if (!parent || !isSampled(parent) || this.#traced.has(sessionId)) return;
    const session = await this.parts.sessions.find(sessionId);
    if (!session) return;
    this.#traced.set(sessionId, {
      traceId: parent.traceId,
      parentSpanId: parent.spanId,
      startMs: Date.parse(session.created_at),
      toolCount: 0,
    });
    this.#changed(session);
  }

  close(): void {
    this.#stopListening();
  }

  #changed(session: Session): void {
    const traced = this.#traced.get(session.id);
    if (!traced) return;
    const now = this.parts.clock.now();
    const tool = toolPattern.exec(session.status_reason ?? '')?.[1];
    if (tool !== traced.tool?.name) {
      this.#endTool(session, traced, now);
      if (tool !== undefined) traced.tool = { name: tool, startMs: now };
    }
    const phase = phaseOf(session);
    if (phase === 'works' || phase === 'waits' || phase === 'limited') return;
    this.#endTool(session, traced, now);
    this.#traced.delete(session.id);
    this.parts.tracer.record({
      traceId: traced.traceId,
      spanId: agentSpanId(session),
      parentSpanId: traced.parentSpanId,
      name: `agent ${session.backend}`,
      kind: 'internal',
      startMs: traced.startMs,
      endMs: now,
      attributes: { ...attributesOf(session), 'millrace.status': session.status },
      error: phase === 'done' ? undefined : (session.last_error ?? session.status),
    });
  }

  #endTool(session: Session, traced: Traced, now: number): void {
    const { tool } = traced;
    if (!tool) return;
    traced.tool = undefined;
    traced.toolCount++;
    this.parts.tracer.record({
      traceId: traced.traceId,
      spanId: spanIdOf(`tool ${session.id} ${traced.toolCount}`),
      parentSpanId: agentSpanId(session),
      name: `tool ${tool.name}`,
      kind: 'internal',
      startMs: tool.startMs,
      endMs: now,
      attributes: { ...attributesOf(session), 'gen_ai.tool.name': tool.name },
    });
  }
}

function agentSpanId({ id }: Session): string {
  return spanIdOf(`agent ${id}`);
}

function attributesOf({ id, name, backend }: Session): Record<string, string> {
  return { 'millrace.agent.id': id, 'millrace.agent.name': name, 'millrace.backend': backend };
}
