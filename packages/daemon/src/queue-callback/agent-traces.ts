import { isSampled, readTraceparent, spanIdOf, type Tracer } from '@millrace/kit/tracing';
import type { Clock } from '@millrace/kit/clock';
import { phaseOf } from '../core/session.js';
import type { Session, Sessions } from '../sessions/port.js';

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
