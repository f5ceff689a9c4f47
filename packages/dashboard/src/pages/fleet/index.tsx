import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useRef, useState } from 'react';
import { queries } from '../../api/queries.js';
import { count, dollars } from '../../parts/format.js';
import { setParams, useParam, useTextParam } from '../../parts/location.js';
import { Figure, Page } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty, Loaded } from '../../parts/states.js';
import { VirtualTable } from '../../parts/virtual-table.js';
import { useCosts } from '../../sessions/cost.js';
import { useGuardSettings } from '../../sessions/settings.js';
import { isOver } from '../../sessions/status.js';
import { fleetColumns } from './columns.js';
import { filterSessions, statusGroups, type StatusGroup } from './filter.js';
import { NoAgents } from './no-agents.js';
import { SpawnDialog } from './spawn-dialog.js';
import './fleet.css';

type Session = DaemonSchema<'Session'>;

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
  const search = useRef<HTMLInputElement>(null);
  useShortcut('/', 'Search', () => search.current?.focus());
  const costOf = useCosts();
  const { critical } = useGuardSettings();
  const columns = useMemo(() => fleetColumns(costOf, critical), [costOf, critical]);
  const shown = useMemo(() => filterSessions(sessions, text, group), [sessions, text, group]);
  return (
    <>
      <FleetFigures sessions={sessions} />
      <div className="row">
        <input
          ref={search}
          type="search"
          className="fleet-search"
          placeholder="Name, branch, repository, tag"
          aria-label="Search agents"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <div className="chips" role="group" aria-label="Status">
          {statusGroups.map(({ id, title, includes }) => (
            <button
              key={id}
              type="button"
              className="chip"
              aria-pressed={group === id}
              onClick={() => setGroup(id)}
            >
              {title} {sessions.filter(({ status }) => includes(status)).length}
            </button>
          ))}
        </div>
      </div>
      {shown.length === 0 ? (
        <Empty title="No agent matches the search.">
          <button type="button" onClick={() => setParams({ q: '', status: '' })}>
            Show all
          </button>
        </Empty>
      ) : (
        <div className="fleet">
          <VirtualTable
            label="Agents"
            columns={columns}
            rows={shown}
            rowKey={(session) => session.id}
          />
        </div>
      )}
    </>
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
      <Figure name="Spent today" value={dollars(spend?.daily_usd)} note="measured" />
      <Figure name="Last 7 days" value={dollars(spend?.weekly_usd)} note="measured" />
    </div>
  );
}
