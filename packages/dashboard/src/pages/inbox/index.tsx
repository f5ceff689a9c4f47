import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { daemon } from '../../api/client.js';
import { queries } from '../../api/queries.js';
import { useAction } from '../../parts/action.js';
import { useChoice } from '../../parts/choice.js';
import { Button } from '../../parts/controls.js';
import { words } from '../../parts/format.js';
import { Page, Panel } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status, type Tone } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import { useQuestions } from '../../questions/api.js';
import { QuestionPanel } from '../../questions/panel.js';
import './inbox.css';

type Note = DaemonSchema<'InboxNote'>;

const tones: Readonly<Record<Note['severity'], Tone>> = {
  info: 'calm',
  warning: 'warn',
  critical: 'bad',
};

const pageSize = 100;

const markRead = (id: string) => daemon.call('markNoteRead', { path: { id } });

/** Notifications about agents and branches. */
export default function InboxPage() {
  const inbox = useQuery(queries.inbox());
  const questions = useQuestions();
  const unread = inbox.data?.filter(({ read }) => !read) ?? [];
  const options = { unread: `Unread ${unread.length}`, all: 'All' };
  const [which, choice] = useChoice('show', 'unread', 'Notes', options);
  const readAll = useAction({
    run: async () => {
      for (const { id } of unread) await markRead(id);
    },
    done: () => 'All notes marked as read.',
    refresh: ['inbox'],
  });
  useShortcut('e', 'Mark all notes as read', () => unread.length > 0 && readAll.mutate());
  return (
    <Page
      title="Inbox"
      actions={
        <>
          {choice}
          <Button disabled={unread.length === 0} action={readAll}>
            Mark all read
          </Button>
        </>
      }
    >
      <QuestionPanel questions={questions.open} showsAgents />
      <Loaded query={inbox}>
        {(notes) => <Notes notes={which === 'all' ? notes : unread} which={which} />}
      </Loaded>
    </Page>
  );
}

function Notes({ notes, which }: { notes: readonly Note[]; which: 'unread' | 'all' }) {
  const [shown, setShown] = useState(pageSize);
  const { data: sessions = [] } = useQuery(queries.sessions());
  const tasks = new Map(sessions.map(({ id, task }) => [id, task?.id]));
  const taskOf = ({ agent_id: agent }: Note) => (agent === null ? undefined : tasks.get(agent));
  if (notes.length === 0) {
    return (
      <Empty title={which === 'unread' ? 'No unread notes.' : 'No notes yet.'}>
        You get a note when an agent waits, fails or fills its context, and when its branch needs
        attention.
      </Empty>
    );
  }
  const groups = sameNotes(notes, taskOf);
  return (
    <Panel>
      <ul className="notes">
        {groups.slice(0, shown).map((group) => (
          <NoteRow key={group[0].id} notes={group} task={taskOf(group[0])} />
        ))}
      </ul>
      {groups.length > shown && (
        <div className="panel-body">
          <Button onClick={() => setShown(shown + pageSize)}>
            Show {Math.min(pageSize, groups.length - shown)} more of {groups.length - shown}
          </Button>
        </div>
      )}
    </Panel>
  );
}

type NoteGroup = readonly [Note, ...Note[]];

/**
 * Notes that say the same of the same agent, or of agents that tried the same task, are one row, at
 * the place of the newest.
 */
function sameNotes(
  notes: readonly Note[],
  taskOf: (note: Note) => string | undefined,
): NoteGroup[] {
  const groups = new Map<string, [Note, ...Note[]]>();
  for (const note of notes) {
    const { kind, title, body, agent_id: agent, read } = note;
    const same = JSON.stringify([kind, title, body, taskOf(note) ?? agent, read]);
    const group = groups.get(same);
    if (group) group.push(note);
    else groups.set(same, [note]);
  }
  return [...groups.values()];
}

function NoteRow({ notes, task }: { notes: NoteGroup; task: string | undefined }) {
  const [note] = notes;
  const read = useAction({
    run: async () => {
      for (const { id } of notes) await markRead(id);
    },
    refresh: ['inbox'],
  });
  return (
    <li className={note.read ? 'note note-read' : 'note'}>
      <Status tone={tones[note.severity]}>{note.severity}</Status>
      <div className="note-text">
        <p className="note-title">{note.title}</p>
        {note.body && <p className="note-body">{note.body}</p>}
        <p className="muted">
          {words(note.kind)} · <Time at={note.ts} />
          {notes.length > 1 && ` · ${notes.length} times`}
        </p>
      </div>
      <div className="note-actions">
        {note.agent_id && (
          <Link className="button small" href={`/agents/${note.agent_id}`}>
            Open agent
          </Link>
        )}
        {task !== undefined && (
          <Link className="button small" href={`/tasks/${task}`}>
            Open task
          </Link>
        )}
        {!note.read && (
          <Button className="small" action={read}>
            Mark read
          </Button>
        )}
      </div>
    </li>
  );
}
