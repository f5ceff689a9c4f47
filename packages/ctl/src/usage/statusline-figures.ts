import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { recentSpend } from '@millrace/daemon/spend';
import type { Tools } from '../base/tools.js';
import { makePrivateDirectory } from '@millrace/kit/private-files';
import { dayOf, folderOf, lineOf, type Figures } from './statusline-file.js';

/** Reads the transcripts of the last day, and writes the figures down for the next line. */
export async function refreshFigures(
  env: Readonly<Record<string, string | undefined>>,
  err: { write: (text: string) => unknown },
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
    // The line is still shown; without a file each one reads the transcripts again.
    err.write(`ctl: cannot store the status line: ${(error as Error).message}\n`);
  }
  return figures;
}

/** The same line in this process, which has no input of an agent. */
export async function showFigures(
  { refresh }: { refresh?: boolean },
  { terminal: { env, out, err } }: Tools,
): Promise<void> {
  const figures = await refreshFigures(env, err);
  if (!refresh) out.write(`${lineOf(figures, {}, figures.at)}\n`);
}

function writeFigures(env: Readonly<Record<string, string | undefined>>, figures: Figures): void {
  const folder = folderOf(env);
  makePrivateDirectory(folder);
  const file = join(folder, 'statusline.json');
  writeFileSync(`${file}.${process.pid}`, JSON.stringify(figures), { mode: 0o600 });
  renameSync(`${file}.${process.pid}`, file);
}
