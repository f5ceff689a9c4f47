import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/* The figures of the status line, in a file. Nothing heavy may be imported here. */

export interface Figures {
  at: number;
  /** The local day of `todayUsd`. */
  day: string;
  todayUsd: number | null;
  block: { endsAt: number; usd: number | null; usdPerHour: number | null } | null;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The local date, `2026-01-15`. */
export function dayOf(time: number): string {
  const date = new Date(time);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

export function folderOf(env: Environment): string {
  return join(env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache'), 'millrace');
}

export function readFigures(env: Environment): Figures | undefined {
  try {
    return JSON.parse(readFileSync(join(folderOf(env), 'statusline.json'), 'utf8')) as Figures;
  } catch {
    // There are none yet, or another version wrote them: they are made again.
    return undefined;
  }
}

/** What an agent says of itself. */
export interface AgentFacts {
  model?: { display_name?: unknown };
  cost?: { total_cost_usd?: unknown };
}

export function lineOf(figures: Figures, facts: AgentFacts, now: number): string {
  const { todayUsd, block } = figures;
  const parts: string[] = [];
  const name = facts.model?.display_name;
  const session = facts.cost?.total_cost_usd;
  if (typeof name === 'string' && name !== '') parts.push(name);
  if (typeof session === 'number') parts.push(`session ${usd(session)}`);
  parts.push(todayUsd === null ? 'nothing priced today' : `today ${usd(todayUsd)}`);
  if (block && block.endsAt > now) {
    const minutes = Math.ceil((block.endsAt - now) / 60_000);
    const left = `${Math.floor(minutes / 60)}h ${minutes % 60}m left`;
    const rate = block.usdPerHour === null ? '' : `, ${usd(block.usdPerHour)}/h`;
    parts.push(`block ${block.usd === null ? 'no price' : usd(block.usd)}${rate}, ${left}`);
  }
  // A name of a model comes from outside.
  return parts.join(' | ').replaceAll(/\p{Cc}/gu, '');
}

function usd(value: number): string {
  return `$${value.toFixed(2)}`;
}
