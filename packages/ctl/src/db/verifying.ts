import { UsageError } from '@millrace/kit/errors';
import { humanBytes, humanDuration } from '@millrace/kit/units';
import type { VerifyReport } from '@millrace/db';
import type { Tools } from '../base/tools.js';
import { renderTable, wrapped } from '../render/table.js';
import { counted } from '@millrace/contract/lists';

type Shows = Pick<Tools, 'terminal' | 'exitWith'>;

/** What was checked in a data directory, as text and as more members of the JSON. */
export interface Verified {
  report: VerifyReport;
  checked: string;
  more?: object;
}

/** Verifies a data directory, or a backup. */
export async function verifyEither(
  { data, backup }: { data?: string; backup?: string },
  tools: Shows,
  verifyIn: (directory: string) => Promise<Verified> = verifyDatabase,
): Promise<void> {
  if (data !== undefined && backup === undefined) await verifyData(await verifyIn(data), tools);
  else if (backup !== undefined && data === undefined) {
    await verifyBackup(backup, tools, verifyIn === verifyDatabase);
  } else throw new UsageError('Name what to check: --data DIR or --backup FILE.');
}

async function verifyDatabase(directory: string): Promise<Verified> {
  const { verify } = await import('@millrace/db');
  const report = await verify(directory);
  const { records, indexEntries, logEntries, seq } = report;
  const checked =
    `${counted(records, 'record')}, ${indexEntries} index entries and ` +
    `${counted(logEntries, 'commit')} of the log at commit ${seq}`;
  return { report, checked };
}

async function verifyData(verified: Verified, tools: Shows): Promise<void> {
  const { report, more } = verified;
  if (!report.ok) tools.exitWith(1);
  tools.terminal.show({ ...reportJson(report), ...more }, () => reportText(verified, tools));
}

async function verifyBackup(file: string, { terminal }: Shows, hasRecords: boolean): Promise<void> {
  const { checkBackup } = await import('@millrace/db');
  const { header, trailer } = await checkBackup(file);
  const { seq, sinceSeq, lineageId, createdAt } = header;
  const about = { seq, since_seq: sinceSeq, lineage_id: lineageId, created_at: createdAt };
  const kind = sinceSeq > 0 ? `an incremental backup since commit ${sinceSeq}` : 'a full backup';
  terminal.show(
    { ok: true, file, ...about, ...trailer },
    `${file} is intact: ${kind} at commit ${seq}, ` +
      (hasRecords ? `${counted(trailer.records, sinceSeq > 0 ? 'change' : 'record')}, ` : '') +
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

function reportText({ report, checked }: Verified, { terminal: { out } }: Shows): string {
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
