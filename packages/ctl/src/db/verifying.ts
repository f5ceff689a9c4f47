import { UsageError } from '@millrace/kit/errors';
import { humanBytes, humanDuration } from '@millrace/kit/units';
import type { VerifyReport } from '@millrace/db';
import type { Tools } from '../base/tools.js';
import { renderTable, wrapped } from '../render/table.js';
import { counted } from '@millrace/contract/lists';

type Shows = Pick<Tools, 'terminal' | 'exitWith'>;

/** Verifies a data directory, or a backup; `storeIn` says where the database is in a directory. */
export async function verifyEither(
  { data, backup }: { data?: string; backup?: string },
  tools: Shows,
  storeIn = (directory: string) => directory,
): Promise<void> {
  if (data !== undefined && backup === undefined) await verifyData(storeIn(data), tools);
  else if (backup !== undefined && data === undefined) await verifyBackup(backup, tools);
  else throw new UsageError('Name what to check: --data DIR or --backup FILE.');
}

async function verifyData(directory: string, tools: Shows): Promise<void> {
  const { verify } = await import('@millrace/db');
  const report = await verify(directory);
  if (!report.ok) tools.exitWith(1);
  tools.terminal.show(reportJson(report), () => reportText(report, tools));
}

async function verifyBackup(file: string, { terminal }: Shows): Promise<void> {
  const { checkBackup } = await import('@millrace/db');
  const { header, trailer } = await checkBackup(file);
  const { seq, sinceSeq, lineageId, createdAt } = header;
  const about = { seq, since_seq: sinceSeq, lineage_id: lineageId, created_at: createdAt };
  const kind = sinceSeq > 0 ? `an incremental backup since commit ${sinceSeq}` : 'a full backup';
  terminal.show(
    { ok: true, file, ...about, ...trailer },
    `${file} is intact: ${kind} at commit ${seq}, ` +
      `${counted(trailer.records, sinceSeq > 0 ? 'change' : 'record')}, ` +
      `${humanBytes(trailer.bytes)}, made ${createdAt.toISOString()}.\n`,
  );
}

function reportJson(report: VerifyReport) {
  return {
    ok: report.ok,
    seq: report.seq,
    records: report.records,
    index_entries: report.indexEntries,
    log_entries: report.logEntries,
    problems: report.problems,
    problem_count: report.problemCount,
    elapsed_ms: Math.round(report.elapsedMs),
  };
}

function reportText(report: VerifyReport, { terminal: { out } }: Shows): string {
  const checked =
    `${counted(report.records, 'record')}, ${report.indexEntries} index entries and ` +
    `${counted(report.logEntries, 'commit')} of the log at commit ${report.seq}`;
  const took = humanDuration(report.elapsedMs);
  if (report.ok) return `No problems found: checked ${checked} in ${took}.\n`;
  const rows = report.problems.map(({ kind, where, detail }) => [
    { text: kind, tone: 'bad' as const },
    where,
    detail,
  ]);
  const hidden = report.problemCount - report.problems.length;
  return (
    renderTable(['WHAT', 'WHERE', wrapped('PROBLEM')], rows, out) +
    (hidden > 0 ? `and ${hidden} more\n` : '') +
    `${counted(report.problemCount, 'problem')} in ${checked}. Restore from a backup.\n`
  );
}
