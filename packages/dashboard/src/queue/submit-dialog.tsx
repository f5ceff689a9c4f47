import { useState } from 'react';
import { useAction } from '../parts/action.js';
import { Field, SelectField } from '../parts/controls.js';
import { FormDialog } from '../parts/form-dialog.js';
import { queueServer, type Task } from './api.js';
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
      queueServer.call('submitTask', {
        path: { queue },
        body: {
          handler_ref: handler,
          payload: toBase64(payload),
          payload_content_type: type,
          headers: like?.headers ?? {},
          priority: Number(priority),
          ...(Number(delay) > 0 && { delay_ms: Number(delay) * 1000 }),
        },
      }),
    done: ({ id }) => `Submitted ${id}.`,
    refresh: ['queues'],
    onDone: ({ id }) => onSubmitted(id),
  });
  return (
    <FormDialog
      title={like ? `Submit ${like.handler_ref} again` : `Submit test task to ${queue}`}
      submitLabel="Submit"
      action={submit}
      onClose={onClose}
    >
      <Field
        label="Handler"
        required
        maxLength={256}
        pattern="[A-Za-z0-9][A-Za-z0-9._:\/@\-]*"
        value={handler}
        hint="Sent to the callback as x-queue-handler-ref."
        onChange={setHandler}
      />
      <Field
        label="Payload"
        className="mono"
        rows={5}
        spellCheck={false}
        value={payload}
        onChange={setPayload}
      />
      <SelectField
        label="Payload type"
        value={type}
        options={[...new Set([...types, type])]}
        onChange={setType}
      />
      <div className="fields">
        <Field
          label="Delay in seconds"
          type="number"
          min={0}
          max={2_592_000}
          value={delay}
          onChange={setDelay}
        />
        <Field
          label="Priority"
          type="number"
          min={0}
          max={9}
          required
          value={priority}
          onChange={setPriority}
        />
      </div>
    </FormDialog>
  );
}
