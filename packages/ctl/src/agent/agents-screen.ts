import type { DaemonSchema } from '@millrace/contract/daemon';
import { humanAge } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { tellingIds } from './choosing.js';
import { contextCell, contextText, sinceText, statusCell } from './session-text.js';

type Session = DaemonSchema<'Session'>;

/** Minimum width for the branch and reason columns. */
const wideColumns = 120;

/** Table of agents, newest first. */
export function agentsScreen(sessions: readonly Session[], now: number, sheet: Sheet): string {
  if (sessions.length === 0)
    return asTyped('No agents. Start one with `ctl agent spawn "PROMPT"`.\n');
  const isWide = sheet.columns >= wideColumns;
  const shortIds = tellingIds(
    sessions.map(({ id }) => id),
    sheet,
  );
  const titles = ['ID', 'NAME', 'STATUS', 'DURATION', 'BACKEND', 'CONTEXT'];
  const rows = sessions.map((session): Cell[] => [
    shortIds.get(session.id)!,
    session.name,
    statusCell(session),
    sinceText(session.status_since, now),
    session.backend,
    contextCell(session),
    ...(isWide ? [session.branch ?? '-', reasonOf(session)] : []),
  ]);
  return renderTable(
    [...titles, ...(isWide ? ['BRANCH', 'REASON'] : [])].map((title) => ({ title })),
    rows,
    sheet,
  );
}

function reasonOf({ status_reason: reason, last_error: error }: Session): string {
  return reason ?? error ?? '';
}

/** All fields of one agent. */
export function agentSheet(session: Session, now: number, sheet: Sheet): string {
  const columns = [{ title: '' }, { title: '', overflow: 'wrap' as const }];
  return renderTable(columns, factsOf(session, now), sheet);
}

function factsOf(session: Session, now: number): Cell[][] {
  const when = (time: string) => `${time} (${humanAge(Date.parse(time), now)})`;
  const facts: [name: string, value: Cell | null][] = [
    ['agent', session.id],
    ['name', session.name],
    ['status', statusCell(session)],
    ['why', session.status_reason],
    ['since', when(session.status_since)],
    ['backend', session.backend],
    ['model', session.model],
    ['driver', session.driver],
    ['backend session', session.backend_session_id],
    ['prompt', session.prompt],
    ['directory', session.workdir],
    ['repository', session.repo],
    ['branch', session.branch],
    ['worktree', session.worktree],
    ['tags', session.tags.length === 0 ? null : session.tags.join(', ')],
    ['parent', session.parent_id],
    ['pipeline', session.pipeline_id],
    ['job', session.job_id],
    ['context', session.context_tokens === null ? null : contextText(session)],
    ['compact', session.force_compact === 'inherit' ? null : `forced: ${session.force_compact}`],
    ['process', session.pid === null ? null : String(session.pid)],
    ['exit code', session.exit_code === null ? null : String(session.exit_code)],
    ['restarts', restartsOf(session)],
    ['limited', session.limited_until === null ? null : `until ${when(session.limited_until)}`],
    ['last error', session.last_error === null ? null : { text: session.last_error, tone: 'bad' }],
    ['spawned', when(session.created_at)],
  ];
  return facts.flatMap(([name, value]) => (value === null ? [] : [[name, value]]));
}

function restartsOf({ restart_count: count, auto_restart: isAutomatic }: Session): string | null {
  if (count === 0 && !isAutomatic) return null;
  return `${count}${isAutomatic ? ', restarted when it fails' : ''}`;
}
