import type { DaemonSchema } from '@millrace/contract/daemon';
import { reasonOf } from '@millrace/contract/lists/daemon';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useRef, useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { queries } from '../../api/queries.js';
import { Button } from '../../parts/controls.js';
import { baseName, count } from '../../parts/format.js';
import { useRowKeys } from '../../parts/row-keys.js';
import { Status } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import { useQuestions, type Question } from '../../questions/api.js';
import { QuestionView } from '../../questions/question.js';
import { sessionTones } from '../../sessions/status.js';
import { Loaded } from '../../parts/states.js';
import { columnTexts, type ColumnName, type WaitingWork } from './board-columns.js';
import { Attempts } from './columns.js';
import { boardCards, earlierAttempts } from './filter.js';
import { useWaitingWork } from './use-waiting-work.js';
import './board.css';

type Session = DaemonSchema<'Session'>;

interface BoardProps {
  /** The search; work without a session is left out while there is one. */
  text: string;
}

const pageSize = 50;

/** The agents as cards, in the columns of the daemon. */
export default function Board({ text }: BoardProps) {
  const board = useQuery(queries.board());
  return (
    <Loaded query={board} rows={8}>
      {({ columns }) => <Columns {...{ columns, text }} />}
    </Loaded>
  );
}

interface ColumnsProps extends BoardProps {
  columns: DaemonSchema<'Board'>['columns'];
}

function Columns({ columns, text }: ColumnsProps) {
  const questions = useQuestions();
  const waiting = useWaitingWork();
  const [sizes, setSizes] = useState<Partial<Record<ColumnName, number>>>({});
  const root = useRef<HTMLDivElement>(null);
  const found = useMemo(() => boardCards(columns, text), [columns, text]);
  const earlierOf = useMemo(
    () => earlierAttempts(columns.flatMap(({ sessions }) => sessions)),
    [columns],
  );
  const isFiltered = text.trim() !== '';
  const work = isFiltered ? [] : waiting.work;
  let cardCount = 0;
  const shown = found.map(({ name, sessions }) => {
    const limit = sizes[name] ?? pageSize;
    const waits = name === 'queued' ? work.slice(0, limit) : [];
    const cards = sessions.slice(0, limit - waits.length);
    const first = cardCount;
    cardCount += waits.length + cards.length;
    const extra = name === 'queued' && !isFiltered ? waiting.total : 0;
    return { name, waits, cards, first, limit, total: sessions.length + extra };
  });
  useRowKeys(root, cardCount, (index) =>
    root.current?.querySelector(`[data-index="${index}"]`)?.scrollIntoView({ block: 'nearest' }),
  );
  return (
    <div ref={root} className="board">
      {shown.map(({ name, waits, cards, first, limit, total }) => (
        <Column key={name} {...columnTexts[name]} total={total}>
          {waits.map((one, index) => (
            <WorkCard key={one.id} work={one} index={first + index} />
          ))}
          {cards.map((session, index) => (
            <SessionCard
              key={session.id}
              session={session}
              index={first + waits.length + index}
              question={questions.of(session.id)[0]}
              earlier={earlierOf(session)}
            />
          ))}
          {waits.length + cards.length === limit && total > limit && (
            <li>
              <Button
                className="small"
                onClick={() => setSizes({ ...sizes, [name]: limit + pageSize })}
              >
                Show more of {count(total - limit)}
              </Button>
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
  earlier: readonly Session[];
}

function SessionCard({ session, index, question, earlier }: SessionCardProps) {
  const { id, name, status, status_since, backend } = session;
  const reason = reasonOf(session);
  const place = session.branch ?? baseName(session.repo ?? session.workdir);
  return (
    <li className="board-card" data-index={index}>
      <Link href={`/agents/${id}`} className="row-link board-name">
        {name}
      </Link>
      <Attempts session={session} earlier={earlier} />
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
