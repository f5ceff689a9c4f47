import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useRef } from 'react';
import { queries } from '../../api/queries.js';
import { useChoice } from '../../parts/choice.js';
import { Button, DialogButton } from '../../parts/controls.js';
import { count } from '../../parts/format.js';
import { setParams, useTextParam } from '../../parts/location.js';
import { onDemand } from '../../parts/on-demand.js';
import { Figure, Page } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty, Loaded } from '../../parts/states.js';
import { useIsNarrow } from '../../parts/use-is-narrow.js';
import { VirtualTable } from '../../parts/virtual-table.js';
import { useQuestions } from '../../questions/api.js';
import { spentText, useCosts } from '../../sessions/cost.js';
import { useGuardSettings } from '../../sessions/settings.js';
import { isOver } from '../../sessions/status.js';
import { fleetColumns } from './columns.js';
import { earlierAttempts, filterSessions, isIn, statusGroups, type StatusGroup } from './filter.js';
import { NoAgents } from './no-agents.js';
import { SpawnDialog } from './spawn-dialog.js';
import './fleet.css';

type Session = DaemonSchema<'Session'>;

const Board = onDemand(() => import('./board.js'), { rows: 8 });

const views = { table: 'Table', board: 'Board' };
const groups = Object.keys(statusGroups) as StatusGroup[];

/** All agents with status, context and cost. */
export default function FleetPage() {
  const sessions = useQuery(queries.sessions());
  return (
    <Page
      title="Fleet"
      actions={
        <DialogButton className="primary" label="New agent" shortcut="n">
          {(onClose) => <SpawnDialog onClose={onClose} />}
        </DialogButton>
      }
    >
      <Loaded query={sessions} rows={8} empty={<NoAgents />}>
        {(list) => <Fleet sessions={list} />}
      </Loaded>
    </Page>
  );
}

function Fleet({ sessions }: { sessions: readonly Session[] }) {
  const [text, setText] = useTextParam('q');
  const options = Object.fromEntries(
    groups.map((id) => {
      const size = sessions.filter(({ status }) => isIn(id, status)).length;
      return [id, `${statusGroups[id][0]} ${size}`];
    }),
  ) as Record<StatusGroup, string>;
  const [group, statusChips] = useChoice('status', 'all', 'Status', options);
  const [view, viewChoice, setView] = useChoice('view', 'table', 'View', views);
  const search = useRef<HTMLInputElement>(null);
  useShortcut('/', 'Search', () => search.current?.focus());
  useShortcut('v', 'Switch between table and board', () =>
    setView(view === 'table' ? 'board' : 'table'),
  );
  // The columns of the board are statuses, so it has no status filter.
  const shownGroup = view === 'board' ? 'all' : group;
  const shown = useMemo(
    () => filterSessions(sessions, text, shownGroup),
    [sessions, text, shownGroup],
  );
  return (
    <>
      <FleetFigures sessions={sessions} />
      <div className="row">
        {viewChoice}
        <input
          ref={search}
          type="search"
          className="fleet-search"
          placeholder="Name, branch, repository, tag"
          aria-label="Search agents"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        {view === 'table' && statusChips}
      </div>
      {shown.length === 0 ? (
        <Empty title="No agent matches the search.">
          <Button onClick={() => setParams({ q: '', status: '' })}>Show all</Button>
        </Empty>
      ) : view === 'board' ? (
        <Board text={text} />
      ) : (
        <FleetTable sessions={shown} all={sessions} />
      )}
    </>
  );
}

interface FleetTableProps {
  sessions: readonly Session[];
  /** With the earlier attempts, which have no row. */
  all: readonly Session[];
}

function FleetTable({ sessions, all }: FleetTableProps) {
  const costOf = useCosts();
  const { critical } = useGuardSettings();
  const questions = useQuestions();
  const isNarrow = useIsNarrow();
  const columns = useMemo(
    () => fleetColumns(costOf, critical, questions.of, isNarrow, earlierAttempts(all)),
    [costOf, critical, questions, isNarrow, all],
  );
  return (
    <div className="fleet">
      <VirtualTable
        label="Agents"
        columns={columns}
        rows={sessions}
        rowKey={(session) => session.id}
        narrowRowHeight={88}
      />
    </div>
  );
}

function FleetFigures({ sessions }: { sessions: readonly Session[] }) {
  const { data: spend } = useQuery(queries.spend());
  const live = sessions.filter(({ status }) => !isOver(status));
  const waiting = live.filter(({ status }) => status === 'waiting_for_input').length;
  const full = live.filter(({ context_state }) => context_state === 'critical').length;
  return (
    <div className="figures">
      <Figure name="Live agents" value={count(live.length)} note={`of ${count(sessions.length)}`} />
      <Figure
        name="Waiting for you"
        value={count(waiting)}
        note={waiting > 0 ? 'answer them to continue' : null}
      />
      <Figure name="Context critical" value={count(full)} note={full > 0 ? 'compact soon' : null} />
      <Figure
        name="Spent today"
        value={spentText(spend, spend?.daily_exact_usd)}
        note="list prices"
      />
      <Figure
        name="Last 7 days"
        value={spentText(spend, spend?.weekly_exact_usd)}
        note="list prices"
      />
    </div>
  );
}
