import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { Link } from 'wouter';
import { Panel } from '../../parts/page.js';
import { Loaded } from '../../parts/states.js';
import { queueQueries } from '../../queue/api.js';
import { TaskView } from '../tasks/task-view.js';

interface TaskLookupProps {
  /** The task shown; empty for none. */
  id: string;
  onLookup: (id: string) => void;
}

/** Shows any task by id, and why it is waiting. */
export function TaskLookup({ id, onLookup }: TaskLookupProps) {
  const [typed, setTyped] = useState(id);
  useEffect(() => setTyped(id), [id]);
  return (
    <Panel title="Task">
      <form
        className="task-lookup"
        onSubmit={(event) => {
          event.preventDefault();
          onLookup(typed.trim());
        }}
      >
        <input
          className="mono"
          aria-label="Task id"
          placeholder="Task id"
          required
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
        <button type="submit">Look up</button>
      </form>
      {id !== '' && <Found id={id} />}
    </Panel>
  );
}

function Found({ id }: { id: string }) {
  const task = useQuery(queueQueries.task(id));
  return (
    <div className="panel-body">
      <Loaded query={task} rows={2}>
        {(found) => (
          <>
            <p>
              <Link href={`/tasks/${id}`}>Open the task page</Link>
            </p>
            <TaskView task={found} />
          </>
        )}
      </Loaded>
    </div>
  );
}
