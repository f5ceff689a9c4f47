import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useMemo, useRef, useState } from 'react';
import { queries } from '../../api/queries.js';
import { Choice } from '../../parts/choice.js';
import { count } from '../../parts/format.js';
import { setParams, useParam, useTextParam } from '../../parts/location.js';
import { Figure, Page } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty, Loaded, Loading } from '../../parts/states.js';
import { useIsNarrow } from '../../parts/use-is-narrow.js';
import { VirtualTable } from '../../parts/virtual-table.js';
import { useQuestions } from '../../questions/api.js';
import { spentText, useCosts } from '../../sessions/cost.js';
import { useGuardSettings } from '../../sessions/settings.js';
import { isOver } from '../../sessions/status.js';
import { fleetColumns } from './columns.js';
import { earlierAttempts, filterSessions, statusGroups, type StatusGroup } from './filter.js';
import { NoAgents } from './no-agents.js';
import { SpawnDialog } from './spawn-dialog.js';
import './fleet.css';

type Session = DaemonSchema<'Session'>;

const Board = lazy(() => import('./board.js'));

type View = 'table' | 'board';

const views: readonly { value: View; text: string }[] = [
  { value: 'table', text: 'Table' },
  { value: 'board', text: 'Board' },
];
const viewIds = views.map(({ value }) => value);
const groupIds = statusGroups.map(({ id }) => id);

/** All agents with status, context and cost. */
export default function FleetPage() {
  const sessions = useQuery(queries.sessions());
  const [isSpawning, setIsSpawning] = useState(false);
  useShortcut('n', 'New agent', () => setIsSpawning(true));
  return (
    <Page
      title="Fleet"
      actions={
        <button type="button" className="primary" onClick={() => setIsSpawning(true)}>
          New agent
        </button>
      }
    >
      <Loaded query={sessions} rows={8}>
        {(list) => (list.length === 0 ? <NoAgents /> : <Fleet sessions={list} />)}
      </Loaded>
      {isSpawning && <SpawnDialog onClose={() => setIsSpawning(false)} />}
    </Page>
  );
}

function Fleet({ sessions }: { sessions: readonly Session[] }) {
  const [text, setText] = useTextParam('q');
  const [group, setGroup] = useParam<StatusGroup>('status', 'all', groupIds);
  const [view, setView] = useParam<View>('view', 'table', viewIds);
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
        <Choice label="View" value={view} options={views} onChange={setView} />
        <input
          ref={search}
          type="search"
          className="fleet-search"
          placeholder="Name, branch, repository, tag"
          aria-label="Search agents"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        {view === 'table' && <StatusChips {...{ sessions, group }} onGroup={setGroup} />}
      </div>
      {shown.length === 0 ? (
        <Empty title="No agent matches the search.">
          <button type="button" onClick={() => setParams({ q: '', status: '' })}>
            Show all
          </button>
        </Empty>
      ) : view === 'board' ? (
        <Suspense fallback={<Loading rows={8} />}>
          <Board text={text} />
        </Suspense>
      ) : (
        <FleetTable sessions={shown} all={sessions} />
      )}
    </>
  );
}

interface StatusChipsProps {
  sessions: readonly Session[];
  group: StatusGroup;
  onGroup: (group: StatusGroup) => void;
}

function StatusChips({ sessions, group, onGroup }: StatusChipsProps) {
  const options = statusGroups.map(({ id, title, includes }) => ({
    value: id,
    text: `${title} ${sessions.filter(({ status }) => includes(status)).length}`,
  }));
  return <Choice label="Status" value={group} options={options} onChange={onGroup} />;
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
        narrowRowHeight={76}
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
