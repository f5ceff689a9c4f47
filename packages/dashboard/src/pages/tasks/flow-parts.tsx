import type { QueueSchema } from '@millrace/contract/queue';
import { useState } from 'react';
import { Link } from 'wouter';
import { useAction } from '../../parts/action.js';
import { FormError, SelectField } from '../../parts/controls.js';
import { Fact } from '../../parts/page.js';
import { explain } from '../../parts/states.js';
import { Status } from '../../parts/status.js';
import { queueServer, type Task } from '../../queue/api.js';
import { taskTones, type TaskNode } from './timeline.js';

/** The facts of a task that belongs to a flow. */
export function FlowFacts({ task }: { task: Task }) {
  const { flow_id: flow, parent_id: parent, depends_on: dependencies = [] } = task;
  return (
    <>
      {flow && (
        <Fact name="Flow">
          <Link href={`/flows/${flow}?task=${task.id}`}>{flow}</Link>
        </Fact>
      )}
      {parent && (
        <Fact name="Parent">
          <Link href={`/tasks/${parent}`}>{parent}</Link>
        </Fact>
      )}
      {dependencies.length > 0 && (
        <Fact name="Depends on">
          {dependencies.map(({ id, on, status }) => (
            <div key={id} className="row">
              <Link href={`/tasks/${id}`}>{id}</Link>
              <Status tone={taskTones[status]}>{status.toLowerCase()}</Status>
              {on === 'end' && <span className="muted">succeeded or dead</span>}
            </div>
          ))}
        </Fact>
      )}
    </>
  );
}

/** The children of a task, and theirs. */
export function TaskTree({ tree }: { tree: QueueSchema<'TaskTree'> }) {
  const { children = [] } = tree.root;
  if (children.length === 0) return null;
  return (
    <section aria-label="Children">
      <h3>Children</h3>
      <Branches nodes={children} />
      {tree.truncated && <p className="muted">The first 1,000 tasks are shown.</p>}
    </section>
  );
}

function Branches({ nodes }: { nodes: readonly TaskNode[] }) {
  return (
    <ul className="task-tree">
      {nodes.map((node) => (
        <li key={node.id}>
          {node.hidden ? (
            <span className="muted">{node.id} is in a queue that you may not see</span>
          ) : (
            <div className="row">
              <Link href={`/tasks/${node.id}`}>{node.handler_ref}</Link>
              <Status tone={taskTones[node.status!]}>{node.status!.toLowerCase()}</Status>
              <span className="muted">{node.queue}</span>
            </div>
          )}
          {(node.children ?? []).length > 0 && <Branches nodes={node.children!} />}
        </li>
      ))}
    </ul>
  );
}

/** Sends one of the signals that a task waits for. */
export function SignalForm({ id, names }: { id: string; names: readonly string[] }) {
  const [name, setName] = useState(names[0]!);
  const [text, setText] = useState('');
  const [fault, setFault] = useState('');
  const send = useAction({
    run: (payload: unknown) =>
      queueServer.call('sendSignal', {
        path: { id },
        body: { name, ...(payload !== undefined && { payload }) },
      }),
    done: () => `Sent ${name}.`,
    refresh: ['queue-task', 'task-history'],
    onDone: () => setText(''),
    onFailed: (error) => {
      setFault(explain(error).title);
      return true;
    },
  });
  const submit = () => {
    setFault('');
    try {
      send.mutate(text.trim() === '' ? undefined : (JSON.parse(text) as unknown));
    } catch (error) {
      setFault(`The payload is not JSON: ${(error as Error).message}`);
    }
  };
  return (
    <form
      className="stack signal-form"
      aria-label="Signal"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <h3>Signal</h3>
      <p className="muted">The task waits for {names.length === 1 ? 'it' : 'one of them'}.</p>
      <div className="row">
        <SelectField label="Name" value={name} options={names} onChange={setName} />
        <label className="field signal-payload">
          JSON payload
          <textarea
            rows={2}
            placeholder="none"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </label>
      </div>
      <FormError>{fault}</FormError>
      <div>
        <button type="submit" className="primary" disabled={send.isDisabled}>
          Send signal
        </button>
      </div>
    </form>
  );
}
