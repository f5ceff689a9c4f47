import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { Panel } from '../../parts/page.js';
import { Loaded } from '../../parts/states.js';
import { queueQueries } from './api.js';
import { TaskView } from './task-view.js';

interface TaskLookupProps {
  /** The task that is looked at; empty for none. */
  id: string;
  onLook: (id: string) => void;
}

/** Any task by its id: what became of it, and why it does not run. */
export function TaskLookup({ id, onLook }: TaskLookupProps) {
  const [typed, setTyped] = useState(id);
  useEffect(() => setTyped(id), [id]);
  return (
    <Panel title="Task">
      <form
        className="task-lookup"
        onSubmit={(event) => {
          event.preventDefault();
          onLook(typed.trim());
        }}
      >
        <input
          className="mono"
          aria-label="Id of a task"
          placeholder="Id of a task"
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
        {(found) => <TaskView task={found} />}
      </Loaded>
    </div>
  );
}
