import { Refusal, UsageError } from '@millrace/kit/errors';
import { humanDuration, parseTimestamp, UnitError } from '@millrace/kit/units';
import type { RestoreTarget } from '@millrace/db';
import { asTyped } from '../base/command-name.js';
import type { Tools } from '../base/tools.js';
import { Progress } from './progress.js';
import { counted } from '@millrace/contract/lists';

const verbs = { check: 'Checking', restore: 'Restored', verify: 'Verifying' } as const;

export async function restoreTo(
  flags: { from: string[]; data: string; to?: string },
  { terminal }: Pick<Tools, 'terminal'>,
): Promise<void> {
  const { from: files, data: directory } = flags;
  const to = targetOf(flags.to);
  const { restore } = await import('@millrace/db');
  const progress = new Progress(terminal, '');
  const restored = await restore(files, directory, {
    to,
    onProgress: ({ stage, records, of }) => progress.show({ records, of }, verbs[stage]),
  })
    .catch((error: unknown) => {
      // The command was used rightly: the files or the directory do not allow it.
      if (!(error instanceof UsageError)) throw error;
      throw new Refusal('RESTORE_REFUSED', error.message, { cause: error });
    })
    .finally(() => progress.end());
  const { out, json } = terminal;
  if (json) {
    const { seq, records, lineageId } = restored;
    const shown = { data: directory, seq, records, lineage_id: lineageId };
    out.write(`${JSON.stringify(shown, null, 2)}\n`);
    return;
  }
  const took = humanDuration(progress.elapsedMs);
  out.write(
    `Restored ${counted(restored.records, 'record')} at commit ${restored.seq} to ` +
      `${directory} in ${took}, and verified them.\n` +
      asTyped(`Serve it with: ctl db serve --data ${directory}\n`),
  );
}

/** `1200` is a commit, `2026-05-04T09:30:00Z` a time. */
export function targetOf(text: string | undefined): RestoreTarget | undefined {
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  try {
    return new Date(parseTimestamp(text));
  } catch (error) {
    if (!(error instanceof UnitError)) throw error;
    throw new UsageError(`--to must be a commit number or a time: ${error.message}.`);
  }
}
