import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { useRef, useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { queries } from '../../api/queries.js';
import { baseName, count } from '../../parts/format.js';
import { useRowKeys } from '../../parts/row-keys.js';
import { Status } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import { useQuestions, type Question } from '../../questions/api.js';
import { QuestionView } from '../../questions/question.js';
import { sessionTones } from '../../sessions/status.js';
import { boardColumns, columnOf, type ColumnId, type WaitingWork } from './board-columns.js';
import { useWaitingWork } from './use-waiting-work.js';
import './board.css';

type Session = DaemonSchema<'Session'>;

interface BoardProps {
  sessions: readonly Session[];
  /** Whether a search hides some sessions; work without a session is left out then. */
  isFiltered: boolean;
}

const pageSize = 50;

/** The agents as cards, in columns by what they need next. */
export default function Board({ sessions, isFiltered }: BoardProps) {
  const { data: branches } = useQuery(queries.branches());
  const questions = useQuestions();
  const waiting = useWaitingWork();
  const [sizes, setSizes] = useState<Partial<Record<ColumnId, number>>>({});
  const root = useRef<HTMLDivElement>(null);
  const standings = new Map(branches?.map((one) => [one.agent_id, one]));
  const columns = new Map<ColumnId, Session[]>(boardColumns.map(({ id }) => [id, []]));
  const facts = {
    standingOf: (id: string) => standings.get(id),
    hasQuestion: (id: string) => questions.of(id).length > 0,
  };
  for (const session of sessions) columns.get(columnOf(session, facts))!.push(session);
  const work = isFiltered ? [] : waiting.work;
  let cardCount = 0;
  const shown = boardColumns.map((column) => {
    const limit = sizes[column.id] ?? pageSize;
    const waits = column.id === 'queued' ? work.slice(0, limit) : [];
    const all = columns.get(column.id)!;
    const cards = all.slice(0, limit - waits.length);
    const first = cardCount;
    cardCount += waits.length + cards.length;
    const extra = column.id === 'queued' && !isFiltered ? waiting.total : 0;
    return { ...column, waits, cards, first, limit, total: all.length + extra };
  });
  useRowKeys(root, cardCount, (index) =>
    root.current?.querySelector(`[data-index="${index}"]`)?.scrollIntoView({ block: 'nearest' }),
  );
  return (
    <div ref={root} className="board">
      {shown.map(({ id, title, empty, waits, cards, first, limit, total }) => (
        <Column key={id} title={title} total={total} empty={empty}>
          {waits.map((one, index) => (
            <WorkCard key={one.id} work={one} index={first + index} />
          ))}
          {cards.map((session, index) => (
            <SessionCard
              key={session.id}
              session={session}
              index={first + waits.length + index}
              question={questions.of(session.id)[0]}
            />
          ))}
          {waits.length + cards.length === limit && total > limit && (
            <li>
              <button
                type="button"
                className="small"
                onClick={() => setSizes({ ...sizes, [id]: limit + pageSize })}
              >
                Show more of {count(total - limit)}
              </button>
            </li>
          )}
        </Column>
      ))}
    </div>
  );
}

interface ColumnProps {
  title: string;
  total: number;
  empty: string;
  children: ReactNode;
}

function Column({ title, total, empty, children }: ColumnProps) {
  return (
    <section className="board-column" aria-label={title}>
      <h2>
        {title} <span className="muted">{count(total)}</span>
      </h2>
      {total === 0 ? <p className="muted">{empty}</p> : <ul>{children}</ul>}
    </section>
  );
}

function WorkCard({ work: { title, note, href }, index }: { work: WaitingWork; index: number }) {
  return (
    <li className="board-card" data-index={index}>
      <Link href={href} className="row-link board-name">
        {title}
      </Link>
      <p className="muted">{note}</p>
    </li>
  );
}

interface SessionCardProps {
  session: Session;
  index: number;
  question: Question | undefined;
}

function SessionCard({ session, index, question }: SessionCardProps) {
  const { id, name, status, status_reason: reason, status_since, backend } = session;
  const place = session.branch ?? baseName(session.repo ?? session.workdir);
  return (
    <li className="board-card" data-index={index}>
      <Link href={`/agents/${id}`} className="row-link board-name">
        {name}
      </Link>
      <div className="row">
        <Status tone={sessionTones[status]}>{status}</Status>
        <span className="muted">
          <Time at={status_since} />
        </span>
      </div>
      {question ? (
        <div className="over-link">
          <QuestionView question={question} isShort />
        </div>
      ) : (
        reason && <p className="board-reason">{reason}</p>
      )}
      <p className="muted ellipsis">
        {backend} · {place}
      </p>
    </li>
  );
}
