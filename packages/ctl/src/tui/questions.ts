import { Refusal } from '@millrace/kit/errors';
import { daemonAnswer, type DaemonFlags } from '../daemon/api.js';
import { harmless } from '../http/exchange.js';
import type { Tools } from '../tools.js';

/** A permission request or choice of an agent. */
export interface Question {
  readonly id: string;
  readonly session_id: string;
  readonly kind: string;
  readonly title: string;
  readonly body: unknown;
  readonly options: readonly { readonly id: string; readonly label: string }[];
  readonly asked_at: string;
}

export type Answer = { readonly option_id: string } | { readonly text: string };

/** Reads and answers questions; undefined from a daemon that has none of them as a resource. */
export class Questions {
  constructor(
    private readonly flags: DaemonFlags,
    private readonly tools: Tools,
  ) {}

  async open(): Promise<Question[] | undefined> {
    const path = '/api/v1/questions?status=open';
    const { status, body } = await daemonAnswer(this.flags, this.tools, 'GET', path, undefined);
    if (status === 404) return undefined;
    if (status !== 200) throw problemOf(body, status);
    const { questions } = body as { questions?: Question[] };
    if (!Array.isArray(questions)) throw problemOf(body, status);
    return questions;
  }

  async answer(id: string, answer: Answer): Promise<void> {
    const path = `/api/v1/questions/${encodeURIComponent(id)}:answer`;
    const { status, body } = await daemonAnswer(this.flags, this.tools, 'POST', path, answer);
    if (status >= 300) throw problemOf(body, status);
  }
}

function problemOf(body: unknown, status: number): Refusal {
  const { code, detail } = (body ?? {}) as { code?: unknown; detail?: unknown };
  const said = typeof detail === 'string' ? harmless(detail) : `The daemon answered ${status}.`;
  return new Refusal(typeof code === 'string' ? code : 'UNAVAILABLE', said);
}

/** The body as lines: a command, a diff, a file, or what the daemon has added since. */
export function bodyLines(body: unknown): string[] {
  if (typeof body === 'string') return body.split('\n');
  if (typeof body !== 'object' || body === null) return [];
  return Object.entries(body).flatMap(([name, value]) => {
    if (value === null || value === undefined) return [];
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return text.includes('\n') ? [`${name}:`, ...text.split('\n')] : [`${name}: ${text}`];
  });
}
