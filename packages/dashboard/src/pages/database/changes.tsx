import { Panel } from '../../parts/page.js';
import { Status, type Tone } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import type { Change } from './api.js';
import { nameOf } from './columns.js';
import type { WatchedChange, Watching } from './use-watch.js';

interface ChangesProps {
  watching: Watching;
  onOpen: (id: string) => void;
  onRunAgain: () => void;
}

const states: Readonly<Record<Watching['state'], [Tone, string]>> = {
  off: ['off', 'off'],
  connecting: ['calm', 'connecting'],
  live: ['good', 'live'],
  lost: ['warn', 'disconnected, retrying'],
  refused: ['bad', 'refused'],
};

/** Changes since the watch started, newest first. */
export function Changes({ watching, onOpen, onRunAgain }: ChangesProps) {
  const { state, reason, changes } = watching;
  const [tone, word] = states[state];
  const fresh = changes.filter(({ op, entered }) => op === 'CHANGE_OP_INSERT' || entered).length;
  return (
    <Panel
      title="Changes"
      actions={
        <>
          <span role="status">
            <Status tone={tone}>{word}</Status> {reason && <span className="muted">{reason}</span>}
          </span>
          {fresh > 0 && (
            <button type="button" className="small" onClick={onRunAgain}>
              Run again to show {fresh} new
            </button>
          )}
        </>
      }
    >
      {changes.length === 0 ? (
        <p className="panel-body muted">
          No changes yet. Changes to records that match the query appear here.
        </p>
      ) : (
        <ul className="db-changes" tabIndex={0} aria-label="Changes, newest first">
          {changes.map((change) => (
            <ChangeItem key={change.at} change={change} onOpen={onOpen} />
          ))}
        </ul>
      )}
    </Panel>
  );
}

const ops: Readonly<Record<Change['op'], [Tone, string]>> = {
  CHANGE_OP_INSERT: ['good', 'inserted'],
  CHANGE_OP_UPDATE: ['busy', 'updated'],
  CHANGE_OP_DELETE: ['bad', 'deleted'],
  CHANGE_OP_EXPIRE: ['off', 'expired'],
};

function ChangeItem({ change, onOpen }: { change: WatchedChange; onOpen: (id: string) => void }) {
  const { op, record, entered, left, committedAt } = change;
  const [tone, word] = ops[op];
  const isThere = op === 'CHANGE_OP_INSERT' || op === 'CHANGE_OP_UPDATE';
  return (
    <li className="row">
      <span className="db-change-op">
        <Status tone={tone}>{word}</Status>
      </span>
      {isThere ? (
        <button type="button" className="db-open" onClick={() => onOpen(record.id)}>
          {nameOf(record)}
        </button>
      ) : (
        <span>{nameOf(record)}</span>
      )}
      <span className="muted">rev {record.rev}</span>
      {op === 'CHANGE_OP_UPDATE' && entered && <span className="tag">matches now</span>}
      {op === 'CHANGE_OP_UPDATE' && left && <span className="tag">no longer matches</span>}
      <span className="muted">
        <Time at={committedAt} />
      </span>
    </li>
  );
}
