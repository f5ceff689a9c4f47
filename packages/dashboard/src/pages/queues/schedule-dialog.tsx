import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { Choice } from '../../parts/choice.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { putSchedule, type Schedule } from '../../queue/api.js';
import { bodyOf, draftOf, fieldErrors, type ScheduleDraft } from './schedule-draft.js';

interface ScheduleDialogProps {
  queue: string;
  /** The schedule to edit; a new one without it. */
  schedule?: Schedule;
  onClose: () => void;
}

const times = [
  { value: 'cron' as const, text: 'Cron' },
  { value: 'every' as const, text: 'Interval' },
];

/** Creates or edits a schedule; the server checks every field. */
export function ScheduleDialog({ queue, schedule, onClose }: ScheduleDialogProps) {
  const [draft, setDraft] = useState(() => draftOf(schedule));
  const name = draft.name.trim();
  const save = useAction({
    run: () => putSchedule(queue, name, bodyOf(draft, schedule)),
    done: () => `Saved the schedule ${name}.`,
    refresh: ['schedules'],
    onDone: onClose,
    // Shown in the form.
    onFailed: () => true,
  });
  const errors = fieldErrors(save.error);
  const field = (key: keyof ScheduleDraft, pointer: string) => ({
    value: draft[key],
    error: errors.get(pointer),
    onChange: (value: string) => {
      setDraft({ ...draft, [key]: value });
      save.reset();
    },
  });
  return (
    <FormDialog
      title={schedule ? `Edit the schedule ${schedule.name}` : `New schedule of ${queue}`}
      submitLabel="Save"
      busy={save.isPending}
      error={errors.size === 0 ? save.error : undefined}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      {!schedule && <Field label="Name" hint="Unique in the queue." {...field('name', 'name')} />}
      <Choice
        label="Runs by"
        value={draft.by}
        options={times}
        onChange={(by) => setDraft({ ...draft, by })}
      />
      {draft.by === 'cron' ? (
        <>
          <Field
            label="Cron"
            hint="Minute, hour, day of month, month, day of week."
            {...field('cron', 'cron')}
          />
          <Field
            label="Time zone"
            hint="Such as UTC or Europe/Oslo."
            {...field('timezone', 'timezone')}
          />
        </>
      ) : (
        <Field label="Every (seconds)" type="number" {...field('seconds', 'every_ms')} />
      )}
      <Field label="Handler" {...field('handler', 'task/handler_ref')} />
      <Field label="Payload" hint="JSON." isLong {...field('payload', 'task/payload')} />
    </FormDialog>
  );
}

interface FieldProps {
  label: string;
  value: string;
  error: string | undefined;
  onChange: (value: string) => void;
  hint?: string;
  type?: 'text' | 'number';
  isLong?: boolean;
}

function Field({ label, value, error, onChange, hint, type = 'text', isLong }: FieldProps) {
  const shared = {
    value,
    'aria-invalid': error !== undefined,
    onChange: (event: { target: { value: string } }) => onChange(event.target.value),
  };
  const note = error ?? hint;
  return (
    <label className="field">
      {label}
      {isLong ? (
        <textarea {...shared} className="mono" rows={4} spellCheck={false} />
      ) : (
        <input
          {...shared}
          {...(type === 'number' && { min: 1, step: 'any' })}
          required
          type={type}
        />
      )}
      {note && (
        <span
          role={error === undefined ? undefined : 'alert'}
          className={error === undefined ? 'field-hint' : 'field-error'}
        >
          {note}
        </span>
      )}
    </label>
  );
}
