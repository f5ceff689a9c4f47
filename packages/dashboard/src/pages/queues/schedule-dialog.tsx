import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { Choice } from '../../parts/choice.js';
import { Field } from '../../parts/controls.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { queueServer, type Schedule } from '../../queue/api.js';
import { bodyOf, draftOf, fieldErrors, type ScheduleDraft } from './schedule-draft.js';

interface ScheduleDialogProps {
  queue: string;
  /** The schedule to edit; a new one without it. */
  schedule?: Schedule;
  onClose: () => void;
}

const times = { cron: 'Cron', every: 'Interval' };

/** Creates or edits a schedule; the server checks every field. */
export function ScheduleDialog({ queue, schedule, onClose }: ScheduleDialogProps) {
  const [draft, setDraft] = useState(() => draftOf(schedule));
  const name = draft.name.trim();
  const save = useAction({
    run: () => {
      const path = { queue, schedule: name };
      return queueServer.call('putSchedule', { path, body: bodyOf(draft, schedule) });
    },
    done: () => `Saved the schedule ${name}.`,
    refresh: ['schedules'],
    onDone: onClose,
    // Shown in the form.
    onFailed: () => true,
  });
  const errors = fieldErrors(save.error);
  const field = (key: keyof ScheduleDraft, pointer: string) => ({
    required: true,
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
      action={save}
      error={errors.size === 0 ? save.error : undefined}
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
        <Field
          label="Every (seconds)"
          type="number"
          min={1}
          step="any"
          {...field('seconds', 'every_ms')}
        />
      )}
      <Field label="Handler" {...field('handler', 'task/handler_ref')} />
      <Field
        label="Payload"
        hint="JSON."
        className="mono"
        rows={4}
        spellCheck={false}
        {...field('payload', 'task/payload')}
        required={false}
      />
    </FormDialog>
  );
}
