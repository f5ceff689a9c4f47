import { useState } from 'react';
import { useAction } from '../parts/action.js';
import { FormDialog } from '../parts/form-dialog.js';
import { submitTask, type Task } from './api.js';
import { fromBase64, toBase64 } from './payload.js';

interface SubmitDialogProps {
  queue: string;
  /** The fields begin with those of this task. */
  like?: Task;
  onClose: () => void;
  onSubmitted: (id: string) => void;
}

const types = ['application/json', 'text/plain; charset=utf-8', 'application/octet-stream'];

/** Submits one test task, or one like another task. */
export function SubmitDialog({ queue, like, onClose, onSubmitted }: SubmitDialogProps) {
  const [handler, setHandler] = useState(like?.handler_ref ?? 'test');
  const [payload, setPayload] = useState(like ? fromBase64(like.payload) : '{}');
  const [type, setType] = useState(like?.payload_content_type ?? types[0]!);
  const [delay, setDelay] = useState('0');
  const [priority, setPriority] = useState(String(like?.priority ?? 4));
  const submit = useAction({
    run: () =>
      submitTask(queue, {
        handler_ref: handler,
        payload: toBase64(payload),
        payload_content_type: type,
        headers: like?.headers ?? {},
        priority: Number(priority),
        ...(Number(delay) > 0 && { delay_ms: Number(delay) * 1000 }),
      }),
    done: ({ id }) => `Submitted ${id}.`,
    refresh: ['queues'],
    onDone: ({ id }) => onSubmitted(id),
  });
  return (
    <FormDialog
      title={like ? `Submit ${like.handler_ref} again` : `Submit test task to ${queue}`}
      submitLabel="Submit"
      busy={submit.isPending}
      onSubmit={() => submit.mutate()}
      onClose={onClose}
    >
      <label className="field">
        Handler
        <input
          required
          maxLength={256}
          pattern="[A-Za-z0-9][A-Za-z0-9._:\/@\-]*"
          value={handler}
          onChange={(event) => setHandler(event.target.value)}
        />
        <span className="field-hint">Sent to the callback as x-queue-handler-ref.</span>
      </label>
      <label className="field">
        Payload
        <textarea
          className="mono"
          rows={5}
          spellCheck={false}
          value={payload}
          onChange={(event) => setPayload(event.target.value)}
        />
      </label>
      <label className="field">
        Payload type
        <select value={type} onChange={(event) => setType(event.target.value)}>
          {[...new Set([...types, type])].map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      <div className="fields">
        <label className="field">
          Delay in seconds
          <input
            type="number"
            min={0}
            max={2_592_000}
            value={delay}
            onChange={(event) => setDelay(event.target.value)}
          />
        </label>
        <label className="field">
          Priority
          <input
            type="number"
            min={0}
            max={9}
            required
            value={priority}
            onChange={(event) => setPriority(event.target.value)}
          />
        </label>
      </div>
    </FormDialog>
  );
}
