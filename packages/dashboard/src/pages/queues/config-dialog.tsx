import { ApiError } from '@millrace/client';
import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { ChangeTable, faultsOf, SettingErrors, type Difference } from '../../parts/changes.js';
import { Choice } from '../../parts/choice.js';
import { Field } from '../../parts/controls.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { putConfig, validateConfig, type QueueConfig } from '../../queue/api.js';
import { differences, writable, type Json } from './config-draft.js';
import { ConfigFields, ConfigJson } from './config-form.js';

interface ConfigDialogProps {
  /** The config to edit; undefined creates a queue. */
  config?: QueueConfig;
  onClose: () => void;
  onSaved: (name: string) => void;
}

/** Creates or edits a queue: form, difference as the server sees it, save. */
export function ConfigDialog({ config, onClose, onSaved }: ConfigDialogProps) {
  const [name, setName] = useState(config?.name ?? '');
  const [draft, setDraft] = useState<Json>(() =>
    config ? writable(config) : { callback: { url: '' } },
  );
  const [view, setView] = useState<'form' | 'json'>('form');
  const [errors, setErrors] = useState<ReadonlyMap<string, string>>(new Map());
  const [review, setReview] = useState<readonly Difference[]>();
  const onFailed = (error: unknown) => {
    setReview(undefined);
    const found = errorsOf(error);
    setErrors(found);
    return found.size > 0;
  };
  const check = useAction({
    run: () => validateConfig(name.trim(), draft),
    onDone: (valid) => {
      setErrors(new Map());
      const before: Json = config ?? {};
      setReview(differences(before, valid));
    },
    onFailed,
  });
  const save = useAction({
    run: () => putConfig(name.trim(), draft, config?.version),
    done: () => (config ? `Saved ${name}.` : `Created ${name.trim()}.`),
    refresh: ['queues', 'queue-config'],
    onDone: () => onSaved(name.trim()),
    onFailed,
  });
  const change = (next: Json) => {
    setDraft(next);
    setReview(undefined);
  };
  const isReviewed = review !== undefined && review.length > 0;
  return (
    <FormDialog
      wide
      title={config ? `Edit ${config.name}` : 'New queue'}
      submitLabel={isReviewed ? (config ? 'Save' : 'Create') : 'Review'}
      busy={check.isPending || save.isPending}
      onSubmit={() => (isReviewed ? save : check).mutate()}
      onClose={onClose}
    >
      {!config && (
        <Field
          label="Name"
          required
          value={name}
          onChange={(next) => {
            setName(next);
            setReview(undefined);
          }}
        />
      )}
      <Choice
        label="View"
        value={view}
        options={{ form: 'Form', json: 'JSON' }}
        onChange={setView}
      />
      {view === 'form' ? (
        <ConfigFields draft={draft} errors={errors} onChange={change} />
      ) : (
        <ConfigJson draft={draft} onChange={change} />
      )}
      {errors.size > 0 && <SettingErrors errors={errors} />}
      {review && <ChangeTable changes={review} isNew={config === undefined} />}
    </FormDialog>
  );
}

/** The errors of a refused config by path; empty when it failed for another reason. */
function errorsOf(error: unknown): Map<string, string> {
  if (!(error instanceof ApiError) || error.status !== 422) return new Map();
  const faults = faultsOf(error);
  if (faults.length === 0) return new Map([['callback.url', error.detail]]);
  return new Map(faults.map(({ pointer, message }) => [pointer.replaceAll('/', '.'), message]));
}
