import { systemClock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import { recentSpend } from '@millrace/daemon/spend';
import type { Tools } from '../base/tools.js';
import { dayOf, lineOf, writeFigures, type Figures } from './statusline-file.js';

/** Reads the transcripts of the last day, and writes the figures down for the next line. */
export async function refreshFigures(
  env: Readonly<Record<string, string | undefined>>,
): Promise<Figures> {
  const now = systemClock.now();
  const { todayUsd, block } = await recentSpend(env, now);
  const figures: Figures = {
    at: now,
    day: dayOf(now),
    todayUsd,
    block: block && {
      endsAt: Date.parse(block.end),
      usd: block.exact_usd,
      usdPerHour: block.burn?.usd_per_hour ?? null,
    },
  };
  try {
    writeFigures(env, figures);
  } catch (error) {
    // The line is right without the file, as in a sandbox; the next one reads the transcripts again.
    console.error(`ctl: the figures could not be kept: ${messageOf(error)}`);
  }
  return figures;
}

/** The same line in this process, which has no input of an agent. */
export async function showFigures(
  { refresh }: { refresh?: boolean },
  { terminal: { env, out } }: Tools,
): Promise<void> {
  const figures = await refreshFigures(env);
  if (!refresh) out.write(`${lineOf(figures, {}, figures.at)}\n`);
}
