import type { DaemonSchema } from '@millrace/contract/daemon';
import { humanCount, humanDuration } from '@millrace/kit/units';
import type { Tone } from '../render/paint.js';
import type { Cell } from '../render/table.js';

type Session = DaemonSchema<'Session'>;

const tones: Readonly<Record<Session['status'], Tone>> = {
  spawning: 'dim',
  working: 'strong',
  waiting_for_input: 'warn',
  idle: 'ok',
  done: 'ok',
  errored: 'bad',
  orphaned: 'bad',
  rate_limited: 'warn',
};

export function statusCell({ status }: Pick<Session, 'status'>): Cell {
  return { text: status, tone: tones[status] };
}

const contextTones = { ok: 'ok', warning: 'warn', critical: 'bad' } as const;

/** `118k`, or `not known`. */
export function contextCell({ context_tokens: tokens, context_state: state }: Session): Cell {
  if (tokens === null) return { text: '-', tone: 'dim' };
  const text = humanCount(tokens);
  return state === null ? text : { text, tone: contextTones[state] };
}

/** `118k tokens, warning` */
export function contextText({ context_tokens: tokens, context_state: state }: Session): string {
  if (tokens === null) return 'not known';
  return `${humanCount(tokens)} tokens${state === null ? '' : `, ${state}`}`;
}

/** Time since then, at least 0, because clocks of two machines may differ. */
export function sinceText(timestamp: string, now: number): string {
  return humanDuration(Math.max(0, Math.round((now - Date.parse(timestamp)) / 1000) * 1000));
}

export function hasEnded({ status }: Pick<Session, 'status'>): boolean {
  return status === 'done' || status === 'errored' || status === 'orphaned';
}
