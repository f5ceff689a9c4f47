import { useId, useState } from 'react';
import { useAction } from '../../parts/action.js';
import { Dialog } from '../../parts/dialog.js';
import { putSchedule } from '../../queue/next-api.js';
import { toBase64 } from './payload.js';

/** Creates a schedule; the server checks every field. */
export function ScheduleDialog({ queue, onClose }: { queue: string; onClose: () => void }) {
  const form = useId();
  const [name, setName] = useState('');
  const [cron, setCron] = useState('0 * * * *');
  const [timezone, setTimezone] = useState('UTC');
  const [handler, setHandler] = useState('');
  const [payload, setPayload] = useState('{}');
  const save = useAction({
    run: () =>
      putSchedule(queue, name.trim(), {
        cron: cron.trim(),
        timezone: timezone.trim(),
        task: {
          handler_ref: handler.trim(),
          payload: toBase64(payload),
          payload_content_type: 'application/json',
        },
      }),
    done: () => `Saved the schedule ${name.trim()}.`,
    refresh: ['schedules'],
    onDone: onClose,
  });
  return (
    <Dialog
      title={`New schedule of ${queue}`}
      onClose={onClose}
      actions={
        <>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form={form} className="primary" disabled={save.isPending}>
            Save
          </button>
        </>
      }
    >
      <form
        id={form}
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate();
        }}
      >
        <Field label="Name" value={name} onChange={setName} hint="Unique in the queue." />
        <Field
          label="Cron"
          value={cron}
          onChange={setCron}
          hint="Minute, hour, day of month, month, day of week."
        />
        <Field
          label="Time zone"
          value={timezone}
          onChange={setTimezone}
          hint="Such as UTC or Europe/Oslo."
        />
        <Field label="Handler" value={handler} onChange={setHandler} />
        <label className="field">
          Payload
          <textarea
            className="mono"
            rows={4}
            spellCheck={false}
            value={payload}
            onChange={(event) => setPayload(event.target.value)}
          />
          <span className="field-hint">JSON.</span>
        </label>
      </form>
    </Dialog>
  );
}

interface FieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  hint?: string;
}

function Field({ label, value, onChange, hint }: FieldProps) {
  return (
    <label className="field">
      {label}
      <input required value={value} onChange={(event) => onChange(event.target.value)} />
      {hint && <span className="field-hint">{hint}</span>}
    </label>
  );
}
